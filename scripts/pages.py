"""A hook of mkdocs: pages of the root stand beside those of docs/, README.md as the home page."""

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "CHANGELOG.md": "CHANGELOG.md",
    "SECURITY.md": "SECURITY.md",
}
"""Pages of the root, and where they are on the site."""

_LINK = re.compile(r"\[([^\]]+)\]\((?!https?:)([^)#]+)([^)]*)\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Have headings named as GitHub names them, so that anchors lead there on both."""
    config.mdx_configs["toc"] = {**config.mdx_configs.get("toc", {}), "slugify": _anchor}
    return config


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Have links to pages of the root lead to where they are on the site."""
    if page.file.src_uri in PAGES.values():
        return markdown
    above = "../" * page.file.src_uri.count("/")
    return markdown.replace(f"]({above}../", f"]({above}")


def _anchor(heading: str, separator: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", separator)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of the root."""
    root = Path(config.config_file_path).parent
    for source, place in PAGES.items():
        text = _LINK.sub(_moved, (root / source).read_text(encoding="utf-8"))
        files.append(File.generated(config, place, content=text))
    return files


def _moved(link: re.Match[str]) -> str:
    """Return a link as it is on the site; of one to code, which is not there, only its text."""
    text, path, anchor = link.groups()
    if path.startswith("docs/"):
        return f"[{text}]({path.removeprefix('docs/')}{anchor})"
    return f"[{text}]({PAGES[path]}{anchor})" if path in PAGES else text
