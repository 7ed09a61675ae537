import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

/** Files and folders of this machine, seen otherwise by what runs in a mount namespace; the machine's own are not touched. */
export interface PrivatePlaces {
  /** The shell that sees them; `more` are options of unshare(1), `before` is done first. */
  readonly shell: (shell: string, options?: { readonly more?: string; readonly before?: string }) => string;
  /** Where a file of a place lies on this machine. */
  readonly path: (path: string) => string;
  readonly read: (path: string) => string;
  readonly write: (path: string, text: string) => void;
  readonly remove: () => void;
}

/** What programs need of an /etc. */
const needed = ["passwd", "group", "nsswitch.conf", "ld.so.cache"];

/** Of each place either the text of a file, or a folder: texts of files by their names in it. An /etc has what programs need beside that. */
export function makePrivatePlaces(
  places: Readonly<Record<string, string | Readonly<Record<string, string>>>>,
): PrivatePlaces {
  const folder = mkdtempSync(join(tmpdir(), "kcore-places-"));
  const write = (path: string, text: string): void => {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  };
  for (const [place, content] of Object.entries(places))
    if (typeof content === "string") write(place, content);
    else {
      mkdirSync(join(folder, place), { recursive: true });
      for (const [name, text] of Object.entries(content)) write(join(place, name), text);
    }
  const hasEtc = "/etc" in places;
  if (hasEtc) {
    mkdirSync(join(folder, "etc/alternatives"));
    for (const name of needed) if (existsSync(`/etc/${name}`)) copyFileSync(`/etc/${name}`, join(folder, "etc", name));
  }
  return {
    shell: (shell, { more = "", before = "true" } = {}) => {
      const commands = [
        ...(hasEtc ? ['mount --bind /etc/alternatives "$0/etc/alternatives"'] : []),
        ...Object.keys(places).map((place) => `mount --rbind "$0${place}" ${place}`),
        before,
      ];
      return `unshare -m ${more} sh -c '${commands.join(" && ")} && exec "$@"' ${folder} ${shell}`;
    },
    path: (path) => join(folder, path),
    read: (path) => readFileSync(join(folder, path), "utf8"),
    write,
    remove: () => rmSync(folder, { recursive: true }),
  };
}
