import { blobOf, type Blob } from "../blob.ts";
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

/** Filesystems that need the network: their units belong to remote-fs.target. */
const networkFilesystem = /^(nfs4?|cifs|smb3|ceph|glusterfs|9p|fuse\..*)$/;

/** A mount unit in /etc/systemd/system. */
export interface MountUnit {
  readonly name: string;
  readonly blob: Blob;
}

/** The mount unit (systemd.mount(5)). `source` names a disk by its device or udev's link: Debian 12's systemd accepts no UUID= there. */
export function mountUnit({
  path,
  source,
  fstype,
  options,
  isRequired,
}: {
  readonly path: string;
  readonly source: string;
  readonly fstype: string;
  readonly options: readonly string[];
  readonly isRequired: boolean;
}): MountUnit {
  const text = `# made by kcore
[Unit]
Description=${path.replaceAll("%", "%%")}

[Mount]
What=${source.replaceAll("%", "%%")}
Where=${path.replaceAll("%", "%%")}
Type=${fstype}
Options=${options.length === 0 ? "defaults" : options.join(",")}

[Install]
${isRequired ? "RequiredBy" : "WantedBy"}=${networkFilesystem.test(fstype) ? "remote" : "local"}-fs.target
`;
  return { name: `${escapePath(path)}.mount`, blob: blobOf(text) };
}

/** Reports the facts `unit` (the hash of its text, or absent) and `enabled`. */
export function probeUnit({ name }: MountUnit): Sh {
  const file = `/etc/systemd/system/${name}`;
  return sh`if [ -f ${file} ]; then sum=$(sha256sum <${file}) && fact unit "sha256:\${sum%% *}"; else fact unit absent; fi
fact enabled "$(systemctl is-enabled ${name} 2>/dev/null)"`;
}
