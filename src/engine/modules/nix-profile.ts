import { z } from "zod";
import { fileBlob } from "../step/blob.ts";
import { defineModule } from "../step/define.ts";
import { AbsolutePath } from "../step/fields.ts";
import { sh, type Sh } from "../step/sh.ts";

const Sha256 = z.string().regex(/^[0-9a-f]{64}$/, "must be a SHA-256 in hex");

/** What a bastion action made: the closure as `nix-store --export` writes it, compressed by gzip. */
const Source = z.strictObject({
  file: AbsolutePath.describe("The file on the bastion."),
  sha256: Sha256.describe("Its SHA-256."),
  size: z.int().positive().describe("Its size in bytes."),
});

const args = z.strictObject({
  profile: AbsolutePath.refine(
    (path) => path.startsWith("/nix/var/nix/profiles/"),
    "must be under /nix/var/nix/profiles",
  )
    .default("/nix/var/nix/profiles/kcore")
    .describe("The profile."),
  path: z
    .string()
    .regex(/^\/nix\/store\/[0-9abcdfghijklmnpqrsvwxyz]{32}-[A-Za-z0-9+._?=-]{1,211}$/, "must be a store path")
    .describe("The store path that the profile shall be."),
  source: Source.optional().describe("Where the bastion has it, for nodes that lack it."),
  narHash: z
    .string()
    .regex(/^sha256:[0-9abcdfghijklmnpqrsvwxyz]{52}$/, "must be sha256: and 52 characters of base 32")
    .optional()
    .describe("The path's hash as `nix-store -q --hash` prints it; compared after delivery."),
  downgrade: z
    .boolean()
    .default(false)
    .describe("May the profile go back from a newer version of what the path's name says?"),
});

/** The end of a store path as Nix reads it: a name, then a version that begins with a digit. */
const named = /^\/nix\/store\/[^-]+-(.+?)-(\d+(?:\.\d+)*)$/;

/** Refuses to replace a newer version of the same name (S-22); versions are numbers between dots, what is otherwise is not compared. */
function refuseDowngrade(profile: string, path: string): Sh | undefined {
  const [, name, version] = named.exec(path) ?? [];
  if (name === undefined || version === undefined) return undefined;
  const hint = `${profile} has a newer version than ${version}; to go back all the same, set downgrade (deploy_node: --set allow_downgrade=true): `;
  return sh`old=$(had profile)
case $old in */*-${name}-[0-9]*) old=\${old##*-${name}-} ;; *) old= ;; esac
case $old in '' | *[!0-9.]*) ;; *)
  a=$old. b=${version}.
  while [ -n "$a$b" ]; do
    x=\${a%%.*} y=\${b%%.*} a=\${a#*.} b=\${b#*.}
    [ "\${x:-0}" -le "\${y:-0}" ] || refuse NIX_DOWNGRADE ${hint}"$old"
    [ "\${x:-0}" -ge "\${y:-0}" ] || break
  done
esac`;
}

/**
 * ```yaml
 * nix.profile:
 *   profile: /nix/var/nix/profiles/kcore
 *   path: /nix/store/0c8fvpkmrx4b8n5mxy4v1ibwrfgjd7l6-kcore-0.1.0
 * ```
 * A newer version of the same name is not replaced unless `downgrade` says so.
 * The path becomes the profile's newest generation; the older ones stay, so `nix-env -p PROFILE --rollback` goes back.
 * The bytes travel once: a node that has the path is sent nothing.
 */
export const nixProfile = defineModule({
  name: "nix.profile",
  summary: "Keeps a Nix profile at a store path, which the bastion delivers.",
  args,
  refusals: ["NIX_DOWNGRADE", "NIX_PATH_DIFFERS"],
  step: ({ profile, path, source, narHash, downgrade }) => {
    // As Nix calls it: what stands behind the hash.
    const blob = source && fileBlob(source, path.slice("/nix/store/".length + 33));
    const guard = downgrade ? undefined : refuseDowngrade(profile, path);
    const check =
      narHash === undefined
        ? sh`:`
        : sh`hash=$(nix-store -q --hash ${path}) || exit 1
  [ "$hash" = ${narHash} ] || refuse NIX_PATH_DIFFERS ${`${path} is not what the bastion has: wanted ${narHash}, found `}"$hash"`;
    return {
      brings: true,
      reach: {
        changes: [{ is: "tree", path: profile }],
        restsOn: [
          ...[path, profile].map((at) => ({ is: "path", path: at }) as const),
          { is: "program", name: "nix-store" },
        ],
      },
      want: { store: "valid", profile: path },
      probe: sh`if nix-store --check-validity ${path} 2>/dev/null; then fact store valid; else fact store absent; fi
if [ -L ${profile} ]; then fact profile "$(readlink -f ${profile})"; else fact profile absent; fi`,
      ...(guard && { guard }),
      apply: sh`# Left by a run that a power cut ended: Nix registers a path before its files are surely on the disk.
if nix-store --check-validity ${path} 2>/dev/null && ! nix-store --verify-path ${path} >/dev/null 2>&1; then
  note "the files of "${path}" are damaged; they are sent again"
  nix-store --delete ${path} >/dev/null || exit 1
fi
if ! nix-store --check-validity ${path} 2>/dev/null; then
  ${
    blob
      ? sh`# A trusted user's import needs no signature; the blob's own checksum was compared when it came.
  { gzip -dc <${blob} || echo broken >"$K_TMP/broken"; } | nix-store --import >/dev/null && [ ! -e "$K_TMP/broken" ] || exit 1`
      : sh`refuse NIX_PATH_DIFFERS ${`${path} is not in the node's store, and the step names no source`}`
  }
  ${check}
  sync
fi
[ "$(readlink -f ${profile})" = ${path} ] || nix-env -p ${profile} --set ${path}`,
      tools: [
        { command: "nix-store", package: "nix-bin" },
        { command: "nix-env", package: "nix-bin" },
        ...(blob ? [{ command: "gzip", package: "gzip" }] : []),
      ],
      timeout: 7200,
      stall: 600,
    };
  },
});
