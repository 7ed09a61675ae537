import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** An /etc of its own for real useradd and groupadd; this machine's accounts are not touched. */
export interface PrivateEtc {
  /** Where it lies. */
  readonly folder: string;
  /** The shell, in a mount namespace that sees the private /etc; with `bare` also an empty /usr/sbin, so no useradd. */
  readonly shell: (shell: string, options?: { readonly bare?: boolean }) => string;
  /** The fields of an entry of passwd, group or shadow; undefined when there is none. */
  readonly entry: (file: string, name: string) => string[] | undefined;
  readonly remove: () => void;
}

export function makePrivateEtc(): PrivateEtc {
  const folder = mkdtempSync(join(tmpdir(), "kcore-etc-"));
  const etc = join(folder, "etc");
  const empty = join(folder, "empty");
  for (const made of [etc, empty]) mkdirSync(made);
  writeFileSync(join(etc, "passwd"), "root:x:0:0:root:/root:/bin/sh\n");
  writeFileSync(join(etc, "group"), "root:x:0:\nadm:x:4:\nusers:x:100:\n");
  writeFileSync(join(etc, "shadow"), "root:*:19000:0:99999:7:::\n", { mode: 0o600 });
  writeFileSync(join(etc, "gshadow"), "root:*::\nadm:*::\nusers:*::\n", { mode: 0o600 });
  for (const file of ["login.defs", "ld.so.cache", "nsswitch.conf"])
    if (existsSync(`/etc/${file}`)) copyFileSync(`/etc/${file}`, join(etc, file));
  // Debian's awk is a link of the alternatives.
  mkdirSync(join(etc, "alternatives"));
  if (existsSync("/etc/alternatives/awk"))
    symlinkSync(readlinkSync("/etc/alternatives/awk"), join(etc, "alternatives/awk"));
  return {
    folder: etc,
    shell: (shell, { bare = false } = {}) => {
      const hide = bare ? `mount --bind ${empty} /usr/sbin && ` : "";
      return `unshare -m sh -c '${hide}mount --bind "$0" /etc && exec "$@"' ${etc} ${shell}`;
    },
    entry: (file, name) =>
      readFileSync(join(etc, file), "utf8")
        .split("\n")
        .find((line) => line.startsWith(`${name}:`))
        ?.split(":"),
    remove: () => rmSync(folder, { recursive: true }),
  };
}
