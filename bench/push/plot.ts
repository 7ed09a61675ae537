import type { Cell, Name, Phase, Results } from "./results.ts";

const [width, height, left, bottom, top, right] = [720, 420, 64, 48, 44, 168];

interface Curve {
  readonly name: Name;
  readonly phase: Phase;
  readonly title: string;
  readonly colour: string;
  readonly dash: string;
}

const curves: readonly Curve[] = [
  { name: "kcore", phase: "A", title: "kcore, A", colour: "#0b6e4f", dash: "none" },
  { name: "kcore", phase: "B", title: "kcore, B", colour: "#0b6e4f", dash: "6 4" },
  { name: "script", phase: "A", title: "the script, A", colour: "#8a5a00", dash: "none" },
  { name: "script", phase: "B", title: "the script, B", colour: "#8a5a00", dash: "6 4" },
];

/** Seconds over nodes at RTT 0, both axes logarithmic: linear growth is a straight line there. */
export function growthPlot({ cells }: Results): string {
  const of = ({ name, phase }: Curve) =>
    cells
      .filter((cell) => cell.contender === name && cell.phase === phase && cell.work === "W" && cell.rtt === 0)
      .toSorted((a, b) => a.nodes - b.nodes);
  const shown = curves.map((curve) => ({ ...curve, points: of(curve) })).filter(({ points }) => points.length > 0);
  const all = shown.flatMap(({ points }) => points);
  const [most, least] = [
    Math.max(...all.map(({ seconds }) => seconds)),
    Math.min(...all.map(({ seconds }) => seconds)),
  ];
  const sizes = [...new Set(all.map(({ nodes }) => nodes))].toSorted((a, b) => a - b);
  const [lowest, highest] = [10 ** Math.floor(Math.log10(least)), 10 ** Math.ceil(Math.log10(most))];
  const largest = Math.max(2, ...sizes);
  const x = (nodes: number) => left + (Math.log(nodes) / Math.log(largest)) * (width - left - right);
  const y = (value: number) =>
    height - bottom - (Math.log(value / lowest) / Math.log(highest / lowest)) * (height - bottom - top);
  const point = (cell: Cell) => `${x(cell.nodes).toFixed(1)},${y(cell.seconds).toFixed(1)}`;
  const ticks = Array.from({ length: Math.round(Math.log10(highest / lowest)) + 1 }, (_, at) => lowest * 10 ** at);
  const grid = [
    ...ticks.map((value) => `<path d="M${left} ${y(value).toFixed(1)}H${width - right}" stroke="#ddd"/>`),
    ...ticks.map((value) => text(left - 8, y(value) + 4, `${Number(value.toPrecision(1))} s`, "end")),
    ...sizes.map((nodes) => text(x(nodes), height - bottom + 20, String(nodes), "middle")),
    text((left + width - right) / 2, height - 8, "nodes", "middle"),
    text(left, 24, "Workload W at RTT 0: seconds from the start of the command to its end", "start"),
  ];
  // Titles stand beside the last points, kept apart.
  let lowestTitle = Infinity;
  const lines = shown
    .map((curve) => ({ ...curve, last: curve.points.at(-1)?.seconds ?? 0 }))
    .toSorted((a, b) => a.last - b.last)
    .flatMap(({ title, colour, dash, points, last }) => {
      lowestTitle = Math.min(y(last) + 4, lowestTitle - 16);
      return [
        `<polyline points="${points.map(point).join(" ")}" fill="none" stroke="${colour}" stroke-width="2" stroke-dasharray="${dash}"/>`,
        ...points.map((cell) => `<circle cx="${point(cell).replace(",", '" cy="')}" r="3" fill="${colour}"/>`),
        text(width - right + 10, lowestTitle, `${title}: ${last.toFixed(1)} s`, "start", colour),
      ];
    });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="13">
<rect width="${width}" height="${height}" fill="#fff"/>
${[...grid, ...lines].join("\n")}
</svg>
`;
}

function text(x: number, y: number, words: string, anchor: string, colour = "#333"): string {
  return `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" text-anchor="${anchor}" fill="${colour}">${words}</text>`;
}
