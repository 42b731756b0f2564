// Orders of rows: a key, and which way.

// Return rows in an order; what is not known comes last either way, and equal ones keep their order.
function sorted(rows, { key, descending }) {
  const sign = descending ? -1 : 1;
  return [...rows].sort((one, other) => {
    if (one[key] === null || other[key] === null) return (one[key] === null) - (other[key] === null);
    return sign * (one[key] - other[key]);
  });
}

// Return the order after a click on the heading of a column: first the one that its column has, then turned round.
function clicked(order, columns, key) {
  if (order.key === key) return { key, descending: !order.descending };
  return { key, descending: Boolean(columns.find((column) => column.key === key).descending) };
}
