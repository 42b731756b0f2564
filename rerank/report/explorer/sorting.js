// Orders of rows: a key and a direction.

// Return rows in an order. Missing values come last in both directions. Ties keep their order.
function sorted(rows, { key, descending }) {
  const sign = descending ? -1 : 1;
  return [...rows].sort((one, other) => {
    if (one[key] === null || other[key] === null) return (one[key] === null) - (other[key] === null);
    return sign * (one[key] - other[key]);
  });
}

// Return the order after a click on a heading: the default direction of the column, reversed by a second click.
function clicked(order, columns, key) {
  if (order.key === key) return { key, descending: !order.descending };
  return { key, descending: Boolean(columns.find((column) => column.key === key).descending) };
}
