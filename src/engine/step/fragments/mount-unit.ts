import { sh, type Sh } from "../sh.ts";

/** sh condition: systemd is this machine's init (sd_booted(3)). */
export const underSystemd: Sh = sh`[ -d /run/systemd/system ]`;

/** The unit's name for a path, as `systemd-escape --path` gives it, without its suffix. */
export function escapePath(path: string): string {
  if (path === "/") return "-";
  return Array.from(Buffer.from(path.slice(1)), (byte, index) => {
    const char = String.fromCharCode(byte);
    if (char === "/") return "-";
    const plain = /[A-Za-z0-9:_.]/.test(char) && !(char === "." && index === 0);
    return plain ? char : `\\x${byte.toString(16).padStart(2, "0")}`;
  }).join("");
}
