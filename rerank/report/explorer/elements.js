// Elements of the page. Texts from files become text nodes and attribute values, never HTML.

const find = (id) => document.getElementById(id);

// Return a new element. Children are elements or texts.
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// An element with a text from a file, which may be written from right to left.
const text = (tag, ...children) => make(tag, { dir: "auto" }, ...children);

// Isolate a text from files within our text (Unicode isolates), so that right-to-left words do not reorder the rest.
const apart = (words) => `\u2068${words}\u2069`;

// Return a row of headings. A column with a key gets a button that sorts by it. aria-sort marks the current order.
function headings(columns, order, sortBy) {
  const row = make("tr");
  for (const { key, name, about } of columns) {
    const heading = make("th", { scope: "col", class: key ? "" : "words" }, name);
    if (about) heading.title = about;
    if (key) {
      const button = make("button", { type: "button", "data-key": key }, name);
      if (about) button.title = about; // the focus is on the button
      button.addEventListener("click", () => sortBy(key));
      heading.replaceChildren(button);
      if (key === order.key) heading.setAttribute("aria-sort", order.descending ? "descending" : "ascending");
    }
    row.append(heading);
  }
  return row;
}

// Replace the headings of a table and keep the focus on the same heading.
function replaceHead(head, row) {
  const key = head.contains(document.activeElement) ? document.activeElement.dataset.key : null;
  head.replaceChildren(row);
  if (key) head.querySelector(`[data-key="${key}"]`).focus();
}

// Return a number with its sign, without a sign if it is rounded to zero.
function signed(number, places) {
  const shown = Math.abs(number).toFixed(places);
  return (Number(shown) === 0 ? "" : number > 0 ? "+" : "−") + shown;
}

const known = (number, shown) => (number === null ? "" : shown(number));
