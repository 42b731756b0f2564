// Contributions of features as bars.

// Return the colour of a feature. The hues of all features are evenly spaced.
const hue = (index, features) => `hsl(${Math.round((360 * index) / features)} 55% 55%)`;

// Return one bar per reason [name, part]. The largest part fills the column.
function reasonBars(reasons) {
  const largest = Math.max(...reasons.map(([, part]) => Math.abs(part))) || 1;
  const rows = reasons.map(([name, part]) => {
    const bar = make("i", { class: part > 0 ? "for" : "against" });
    bar.style.width = `${(100 * Math.abs(part)) / largest}%`;
    return make("div", { class: "reason" }, make("span", {}, name), make("b", {}, signed(part, 2)), bar);
  });
  return make("div", {}, ...rows);
}

// Return the mean of each feature over all candidates, and the differences from it: off[feature][candidate].
function againstMean(parts) {
  const means = parts.map((column) => column.reduce((sum, part) => sum + part, 0) / column.length);
  return { means, off: parts.map((column, feature) => column.map((part) => part - means[feature])) };
}

// Return the largest sum of parts of one sign over all candidates.
function largestSum(off, candidates) {
  const sums = Array.from({ length: candidates }, (_, index) =>
    Math.max(...[1, -1].map((sign) => off.reduce((sum, column) => sum + Math.max(0, sign * column[index]), 0))),
  );
  return Math.max(...sums) || 1;
}

// Return a stacked bar of a candidate: parts below the mean to the left, parts above it to the right.
function stackedBar(features, off, index, largest) {
  const bar = make("span", { class: "stack" });
  for (const [sign, side] of [[-1, "below"], [1, "above"]]) {
    const segments = features.flatMap((name, feature) => {
      const part = off[feature][index];
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
