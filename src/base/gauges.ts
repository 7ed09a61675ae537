/** A gauge for Prometheus: samples by their labels. */
export interface Gauge {
  readonly name: string;
  readonly help: string;
  readonly samples: readonly (readonly [labels: Readonly<Record<string, string>>, value: number])[];
}

/** Gauges in Prometheus' text format; a gauge without samples is left out. */
export function drawGauges(gauges: readonly Gauge[]): string {
  const texts = gauges.map(({ name, help, samples }) => {
    if (samples.length === 0) return "";
    const lines = samples.map(([labels, value]) => `${name}${drawLabels(labels)} ${value}\n`);
    return `# HELP ${name} ${help}\n# TYPE ${name} gauge\n${lines.join("")}`;
  });
  return texts.join("");
}

function drawLabels(labels: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escapeLabel(value)}"`);
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}

function escapeLabel(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}
