// Elements of the page. What was read stands in them as text and as values of attributes, never as HTML.

const find = (id) => document.getElementById(id);

// Return a new element; children are elements, or texts.
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// Text of the set, whose language may be written from right to left.
const text = (tag, ...children) => make(tag, { dir: "auto" }, ...children);

// A text of the set within a line of ours, by Unicode's isolates: one that is written from right to left turns nothing else.
const apart = (words) => `\u2068${words}\u2069`;

// Return a row of headings; those with a key are buttons that sort, as `order` says they do now.
function headings(columns, order, sortBy) {
  const row = make("tr");
  for (const { key, name, about } of columns) {
    const heading = make("th", { scope: "col", class: key ? "" : "words" }, name);
    if (about) heading.title = about;
    if (key) {
      const button = make("button", { type: "button", "data-key": key }, name);
      button.addEventListener("click", () => sortBy(key));
      heading.replaceChildren(button);
      if (key === order.key) heading.setAttribute("aria-sort", order.descending ? "descending" : "ascending");
    }
    row.append(heading);
  }
  return row;
}

// Rebuild a head of headings without losing the focus of the one that was clicked.
function replaceHead(head, row) {
  const key = head.contains(document.activeElement) ? document.activeElement.dataset.key : null;
  head.replaceChildren(row);
  if (key) head.querySelector(`[data-key="${key}"]`).focus();
}

// Return a number with its sign, without one where nothing is left of it.
function signed(number, places) {
  const shown = Math.abs(number).toFixed(places);
  return (Number(shown) === 0 ? "" : number > 0 ? "+" : "−") + shown;
}

const known = (number, shown) => (number === null ? "" : shown(number));
