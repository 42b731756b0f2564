// Weighted parts of features as bars.

// Return the colour of the n-th of several features; the hues are as far apart as can be.
const hue = (place, features) => `hsl(${Math.round((360 * place) / features)} 55% 55%)`;

// Return a bar a reason, [name, part], the largest part as wide as its column.
function reasonBars(reasons) {
  const largest = Math.max(...reasons.map(([, part]) => Math.abs(part))) || 1;
  const rows = reasons.map(([name, part]) => {
    const bar = make("i", { class: part > 0 ? "for" : "against" });
    bar.style.width = `${(100 * Math.abs(part)) / largest}%`;
    return make("div", { class: "reason" }, make("span", {}, name), make("b", {}, signed(part, 2)), bar);
  });
  return make("div", { class: "reasons" }, ...rows);
}

// Of each feature its mean over all candidates, and of each candidate the parts above and below: [feature][candidate].
function againstMean(parts) {
  const means = parts.map((column) => column.reduce((sum, part) => sum + part, 0) / column.length);
  return { means, off: parts.map((column, feature) => column.map((part) => part - means[feature])) };
}

// Return the largest sum of parts of one sign that a candidate has.
function largestSum(off, candidates) {
  const sums = Array.from({ length: candidates }, (_, place) =>
    Math.max(...[1, -1].map((sign) => off.reduce((sum, column) => sum + Math.max(0, sign * column[place]), 0))),
  );
  return Math.max(...sums) || 1;
}

// Return the parts of a candidate one after the other: those below the mean to the left, those above to the right.
function stackedBar(features, off, place, largest) {
  const bar = make("span", { class: "stack" });
  for (const [sign, side] of [[-1, "below"], [1, "above"]]) {
    const segments = features.flatMap((name, feature) => {
      const part = off[feature][place];
      if (sign * part < largest / 200) return [];
      const segment = make("i", { title: `${name} ${signed(part, 3)}` });
      segment.style.width = `${(100 * Math.abs(part)) / largest}%`;
      segment.style.background = hue(feature, features.length);
      return [segment];
    });
    bar.append(make("span", { class: side }, ...segments));
  }
  return bar;
}

function legend(features) {
  const entries = features.map((name, feature) => {
    const colour = make("i");
    colour.style.background = hue(feature, features.length);
    return make("span", {}, colour, name);
  });
  return make("p", { class: "legend" }, ...entries);
}
