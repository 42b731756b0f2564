"""MkDocs hook that adds the pages of the repository root to the site, with README.md as the home page."""

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
"""Pages of the repository root, and their paths on the site."""

_LINK = re.compile(r"\[([^\]]+)\]\((?!https?:)([^)#]+)([^)]*)\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Generate the anchors of headings as GitHub does, so that links to headings work on both sites."""
    config.mdx_configs["toc"] = {**config.mdx_configs.get("toc", {}), "slugify": _anchor}
    return config


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrite links to pages of the repository root, which have another path on the site."""
    if page.file.src_uri in PAGES.values():
        return markdown
    above = "../" * page.file.src_uri.count("/")
    return markdown.replace(f"]({above}../", f"]({above}")


def _anchor(heading: str, separator: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", separator)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of the repository root."""
    root = Path(config.config_file_path).parent
    for source, path in PAGES.items():
        text = _LINK.sub(_site_link, (root / source).read_text(encoding="utf-8"))
        files.append(File.generated(config, path, content=text))
    return files


def _site_link(link: re.Match[str]) -> str:
    """Return a link as it is on the site, or only the text of a link to code, which is not on the site."""
    text, path, anchor = link.groups()
    if path.startswith("docs/"):
        return f"[{text}]({path.removeprefix('docs/')}{anchor})"
    return f"[{text}]({PAGES[path]}{anchor})" if path in PAGES else text
