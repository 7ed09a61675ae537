import { rawSh, type Sh } from "../sh.ts";

/** sh condition: systemd is this machine's init (sd_booted(3)). */
export const underSystemd: Sh = rawSh("[ -d /run/systemd/system ]");

/** The unit's name for a path, as `systemd-escape --path` gives it, without its suffix. */
export function escapePath(path: string): string {
  if (path === "/") return "-";
  return [...path.slice(1)]
    .map((char, index) => {
      if (char === "/") return "-";
      return /[A-Za-z0-9:_.]/.test(char) && !(char === "." && index === 0) ? char : escapeChar(char);
    })
    .join("");
}

function escapeChar(char: string): string {
  return [...Buffer.from(char)].map((byte) => `\\x${byte.toString(16).padStart(2, "0")}`).join("");
}
