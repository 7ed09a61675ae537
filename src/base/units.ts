/** Sizes, durations and ages as operators read them: the same words in tables, views and messages. */

const decimal = ["B", "kB", "MB", "GB", "TB"] as const;
const binary = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"] as const;

/** Bytes of files and transfers, in units of a thousand: `812 B`, `31.2 MB`. */
export function formatBytes(bytes: number): string {
  return `${inDecimal(bytes, decimalOf(bytes))} ${decimal[decimalOf(bytes)] ?? ""}`;
}

/** Bytes of memory and disks, in units of 1024: `512 MiB`, `15.6 GiB`. */
export function formatBinary(bytes: number): string {
  const power = Math.min(binary.length - 1, Math.max(0, Math.floor(Math.log2(Math.max(1, bytes)) / 10)));
  return `${Number((bytes / 1024 ** power).toFixed(1))} ${binary[power] ?? ""}`;
}

/** The progress of a transfer: `31.2/44.0 MB  8.4 MB/s`. */
export function formatSending(of: { readonly sent: number; readonly total: number; readonly rate?: number }): string {
  const speed = of.rate === undefined ? "" : `  ${formatBytes(of.rate)}/s`;
  return `${inDecimal(of.sent, decimalOf(of.total))}/${formatBytes(of.total)}${speed}`;
}

/** Milliseconds in sentences: `0.4 s`, `12 s`, `3 min 05 s`. */
export function formatDuration(milliseconds: number): string {
  const seconds = milliseconds / 1000;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${twoDigits(whole % 60)} s`;
  return `${Math.floor(whole / 3600)} h ${twoDigits((whole % 3600) / 60)} min`;
}

/** Milliseconds in at most six characters (below 100 days), for columns: `0.4s`, `12s`, `3m05s`, `1h02m`, `3d04h`. */
export function shortDuration(milliseconds: number): string {
  const seconds = Math.max(0, milliseconds) / 1000;
  if (seconds < 9.95) return `${seconds.toFixed(1)}s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole}s`;
  if (whole < 3600) return `${Math.floor(whole / 60)}m${twoDigits(whole % 60)}s`;
  if (whole < 86_400) return `${Math.floor(whole / 3600)}h${twoDigits((whole % 3600) / 60)}m`;
  return `${Math.floor(whole / 86_400)}d${twoDigits((whole % 86_400) / 3600)}h`;
}

/** A round trip or a clock's offset: `0.4ms`, `12ms`; `-` for undefined. */
export function formatLatency(milliseconds: number | undefined): string {
  if (milliseconds === undefined) return "-";
  return `${Math.abs(milliseconds) < 10 ? milliseconds.toFixed(1) : Math.round(milliseconds)}ms`;
}

/** An age as one number: `45s`, `12m`, `30h`, `5d`; each unit begins at two of it, so `119s` and `119m` are the longest. */
export function shortAge(milliseconds: number): string {
  const seconds = Math.max(0, Math.round(milliseconds / 1000));
  if (seconds < 120) return `${seconds}s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)}m`;
  return seconds < 172_800 ? `${Math.floor(seconds / 3600)}h` : `${Math.floor(seconds / 86_400)}d`;
}

/** The bytes of a size, whose units are powers of 1024: `4096`, `300M`, `10GiB`, `1.5T`; undefined for another text. */
export function parseSize(text: string): number | undefined {
  const [, number, unit = " "] = /^(\d+(?:\.\d+)?)\s*(?:([KMGTP])(?:i?B)?|B)?$/i.exec(text) ?? [];
  return number === undefined ? undefined : Math.round(Number(number) * 1024 ** " KMGTP".indexOf(unit.toUpperCase()));
}

const secondsOf: Readonly<Record<string, number>> = { ms: 0.001, s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 };

/** The seconds of a duration: `500ms`, `30s`, `5m`, `36h`, `30d`, `8w`; undefined for another text. */
export function parseDuration(text: string): number | undefined {
  const [, number, unit = ""] = /^(\d+(?:\.\d+)?)(ms|s|m|h|d|w)$/.exec(text) ?? [];
  return number === undefined ? undefined : Number(number) * (secondsOf[unit] ?? 1);
}

/** The age of an ISO 8601 time; `-` for an empty text. */
export function since(time: string, now: number): string {
  return time === "" ? "-" : shortAge(now - Date.parse(time));
}

/** The time left until an ISO 8601 time, or `expired`; `-` for an empty text. */
export function until(time: string, now: number): string {
  if (time === "") return "-";
  const leftMs = Date.parse(time) - now;
  return leftMs > 0 ? shortAge(leftMs) : "expired";
}

function twoDigits(number: number): string {
  return String(Math.floor(number)).padStart(2, "0");
}

function decimalOf(bytes: number): number {
  let unit = 0;
  // 999.95 kB would round to 1000.0 kB; it is printed as 1.0 MB.
  while (unit < decimal.length - 1 && bytes >= 999.95 * 1000 ** unit) unit += 1;
  return unit;
}

function inDecimal(bytes: number, unit: number): string {
  return unit === 0 ? String(Math.round(bytes)) : (bytes / 1000 ** unit).toFixed(1);
}
