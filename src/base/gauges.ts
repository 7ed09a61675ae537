/** A gauge for Prometheus: its name and help, and samples by their labels. */
export type Gauge = readonly [
  name: string,
  help: string,
  samples: readonly (readonly [labels: Readonly<Record<string, string>>, value: number])[],
];

/** Gauges in Prometheus' text format; a gauge without samples is left out. */
export function drawGauges(gauges: readonly Gauge[]): string {
  const texts = gauges.map(([name, help, samples]) => {
    const lines = samples.map(([labels, value]) => `${name}${drawLabels(labels)} ${value}\n`);
    return lines.length === 0 ? "" : `# HELP ${name} ${help}\n# TYPE ${name} gauge\n${lines.join("")}`;
  });
  return texts.join("");
}

function drawLabels(labels: Readonly<Record<string, string>>): string {
  const escape = (value: string): string => value.replaceAll(/[\\"]/g, "\\$&").replaceAll("\n", "\\n");
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escape(value)}"`);
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}
