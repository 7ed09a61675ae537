import type { Sending } from "./event.ts";

const units = ["B", "kB", "MB", "GB", "TB"] as const;

/** Bytes as a person says them, in units of a thousand: `812 B`, `31.2 MB`. */
export function formatBytes(bytes: number): string {
  return `${inUnit(bytes, unitOf(bytes))} ${units[unitOf(bytes)] ?? ""}`;
}

/** How far a content is on its way: `31.2/44.0 MB  8.4 MB/s`. */
export function formatSending({ sent, total, rate }: Omit<Sending, "name">): string {
  const unit = unitOf(total);
  const speed = rate === undefined ? "" : `  ${formatBytes(rate)}/s`;
  return `${inUnit(sent, unit)}/${formatBytes(total)}${speed}`;
}

function unitOf(bytes: number): number {
  let unit = 0;
  // What would be told as 1000.0 is 1.0 of the next one.
  while (unit < units.length - 1 && bytes >= 999.95 * 1000 ** unit) unit += 1;
  return unit;
}

function inUnit(bytes: number, unit: number): string {
  return unit === 0 ? String(Math.round(bytes)) : (bytes / 1000 ** unit).toFixed(1);
}
