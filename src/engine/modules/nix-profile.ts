import { z } from "zod";
import { blobName, blobOf, fileBlob } from "../step/blob.ts";
import { defineModule, type Step } from "../step/define.ts";
import { AbsolutePath, Sha256 } from "../step/fields.ts";
import { pathsOf } from "../step/effects.ts";
import { refuseDowngrade } from "../step/fragments/nix-version.ts";
import { sh, type Sh } from "../step/sh.ts";

const storePath = /^\/nix\/store\/[0-9abcdfghijklmnpqrsvwxyz]{32}-[A-Za-z0-9+._?=-]{1,211}$/;

/**
 * One store path on the bastion, as an action exported it: the output of `nix-store --export` without its end mark (8
 * zero bytes), compressed by gzip.
 */
const PathExport = z
  .strictObject({
    path: z.string().regex(storePath, "must be a store path").describe("The store path that the file holds."),
    file: AbsolutePath.describe("The file on the bastion."),
    sha256: Sha256.describe("The file's SHA-256."),
    size: z.int().positive().describe("The file's size in bytes."),
  })
  .meta({
    examples: [
      {
        path: "/nix/store/00000000000000000000000000000000-kcore",
        file: "/var/cache/kcore/kcore.nar.gz",
        sha256: "0".repeat(64),
        size: 1048576,
      },
    ],
  });

const args = z
  .strictObject({
    profile: AbsolutePath.refine(
      (path) => path.startsWith("/nix/var/nix/profiles/"),
      "must be under /nix/var/nix/profiles",
    )
      .default("/nix/var/nix/profiles/kcore")
      .describe("The profile."),
    path: z
      .string()
      .regex(storePath, "must be a store path")
      .optional()
      .describe("The store path that the profile shall be."),
    generation: z
      .int()
      .min(1)
      .optional()
      .describe("Instead of path: the existing generation that the profile shall be at."),
    backFrom: z
      .string()
      .refine(
        (text) => storePath.test(text) || /^[A-Za-z0-9+._?=-]+$/.test(text),
        "must be a store path, or its name without the hash",
      )
      .optional()
      .describe(
        "Instead of path: the version that the profile leaves, such as kcore-0.2.0, for the newest earlier generation of another version.",
      ),
    source: z
      .array(PathExport)
      .min(1)
      .max(10_000)
      .optional()
      .describe(
        "The bastion's files of the path and of each path that it needs, for nodes that lack some; a path comes after those that it needs.",
      ),
    narHash: z
      .string()
      .regex(/^sha256:[0-9abcdfghijklmnpqrsvwxyz]{52}$/, "must be sha256: and 52 characters of base 32")
      .optional()
      .describe("The path's hash as `nix-store -q --hash` prints it; compared after delivery."),
    downgrade: z.boolean().default(false).describe("May the path replace a newer version of the same name?"),
  })
  .refine(
    ({ path, generation, backFrom }) => [path, generation, backFrom].filter((one) => one !== undefined).length === 1,
    "exactly one of path, generation and backFrom must be given",
  )
  .refine(
    ({ path, source, narHash }) => path !== undefined || (source ?? narHash) === undefined,
    "source and narHash speak of a path, which is not given",
  )
  .refine(
    ({ path, source }) => source?.some((one) => one.path === path) ?? true,
    "the path is not in the list that source gives",
  );
type Args = z.output<typeof args>;

/**
 * ```yaml
 * nix.profile:
 *   profile: /nix/var/nix/profiles/kcore
 *   path: /nix/store/0c8fvpkmrx4b8n5mxy4v1ibwrfgjd7l6-kcore-0.1.0
 * ```
 * The path becomes the profile's newest generation; the other generations stay, and `generation` or `backFrom` goes to one
 * of them. A newer version of the same name is not replaced unless `downgrade` allows it. The bastion sends only paths that
 * the node's store lacks, or has with damaged files. The fact `generation` is the number of the present generation.
 */
export const nixProfile = defineModule({
  name: "nix.profile",
  summary: "Keeps a Nix profile at a store path, which the bastion delivers, or at one of its generations.",
  alsoKnownAs: ["nix-env", "nix copy", "closure"],
  args,
  refusals: ["NIX_DOWNGRADE", "NIX_GENERATION_MISSING", "NIX_PATH_DIFFERS"],
  step: (given) => {
    const { profile, path } = given;
    return {
      brings: true,
      effects: {
        writes: [{ is: "tree", path: profile }],
        reads: [...pathsOf([...(path === undefined ? [] : [path]), profile]), { is: "program", name: "nix-store" }],
      },
      ...(path === undefined ? atGeneration(given) : atPath({ ...given, path })),
      timeout: 7200,
      stall: 600,
    };
  },
});

type ProfileStep = Pick<Step, "want" | "probe" | "guard" | "asks" | "offers" | "apply" | "tools">;

const [nixStore, nixEnv, gzip] = [
  { command: "nix-store", package: "nix-bin" },
  { command: "nix-env", package: "nix-bin" },
  { command: "gzip", package: "gzip" },
];

/** Reports the fact `generation`: the profile is a link to `NAME-NUMBER-link`. */
function factGeneration(profile: string): Sh {
  return sh`now=$(readlink ${profile} 2>/dev/null) && now=\${now%-link}
now=\${now##*-}
fact generation "\${now:-none}"`;
}

function atPath({ profile, path, source, narHash, downgrade }: Args & { readonly path: string }): ProfileStep {
  const guard = downgrade ? undefined : refuseDowngrade(profile, path);
  return {
    want: { store: "valid", profile: path },
    probe: sh`if nix-store --check-validity ${path} 2>/dev/null; then fact store valid; else fact store absent; fi
if [ -L ${profile} ]; then fact profile "$(readlink -f ${profile})"; else fact profile absent; fi
${factGeneration(profile)}`,
    ...(guard && { guard }),
    ...(source && delivery(source)),
    apply: sh`${source ? putPaths(path, narHash) : requirePath(path)}
[ "$(readlink -f ${profile})" = ${path} ] || nix-env -p ${profile} --set ${path}`,
    tools: [nixStore, nixEnv, ...(source ? [gzip] : [])],
  };
}

/**
 * Offers the bastion's paths, and asks for the paths that are missing or damaged in the node's store. The store has all
 * dependencies of a valid path.
 */
function delivery(source: NonNullable<Args["source"]>): Required<Pick<Step, "asks" | "offers">> {
  // The label in views is the path's name, without the hash.
  const paths = source.map((one) => ({ path: one.path, blob: fileBlob(one, storeName(one.path)) }));
  const list = blobOf(paths.map(({ path, blob }) => `${blobName(blob)} ${blob.size} ${path}\n`).join(""));
  return {
    offers: paths.map(({ blob }) => blob),
    asks: sh`set -- $(sed 's/.* //' ${list})
nix-store --check-validity --print-invalid "$@" >"$K_TMP/absent" || exit 1
exec 4<"$K_TMP/absent"
valid= count=0 next=
read -r next <&4
while read -r name size at; do
  if [ "$at" = "$next" ]; then
    echo "$name $size import $at"
    count=$((count + 1)) next=
    read -r next <&4
  else
    valid="$valid $at"
  fi
done <${list}
[ "$count" = 0 ] || note "the store lacks $count of $# paths"
# A power cut may have damaged valid paths: Nix registers a path before its files are flushed.
[ -z "$valid" ] || nix-store --verify-path $valid >/dev/null 2>&1 || while read -r name size at; do
  case "$valid " in *" $at "*) ;; *) continue ;; esac
  ! nix-store --verify-path "$at" >/dev/null 2>&1 </dev/null || continue
  note "the files of $at are damaged; they are sent again"
  echo "$name $size mend $at"
done <${list}`,
  };
}

/** Without a source, a missing or damaged path is refused. */
function requirePath(path: string): Sh {
  return sh`nix-store --check-validity ${path} 2>/dev/null || refuse NIX_PATH_DIFFERS ${`${path} is not in the node's store, and the step names no source`}
nix-store --verify-path ${path} >/dev/null 2>&1 || refuse NIX_PATH_DIFFERS ${`the files of ${path} are damaged, and the step names no source`}`;
}

/**
 * Adds the received paths to the store. A damaged path is deleted and imported, or, if other paths or processes need it,
 * repaired in place.
 */
function putPaths(path: string, narHash: string | undefined): Sh {
  const check =
    narHash === undefined
      ? sh`:`
      : sh`hash=$(nix-store -q --hash ${path}) || exit 1
    [ "$hash" = ${narHash} ] || {
      # Deleted, since no later run would compare a valid path.
      nix-store --delete ${path} >/dev/null 2>&1
      refuse NIX_PATH_DIFFERS ${`${path} is not what the bastion has: wanted ${narHash}, found `}"$hash"
    }`;
  return sh`# A trusted user's import needs no signature: the hash of each blob was checked on receipt. The end mark completes the export.
import() {
  { gzip -dc "$@" && head -c 8 /dev/zero; } | nix-store --import >/dev/null
}
# Nix repairs a path from a local binary cache with this one path, also if it works offline. The path's archive begins
# after the first 8 bytes of the export.
mend() {
  if nix-store --delete "$2" >/dev/null 2>&1; then
    import "$1"
    return
  fi
  cache=$K_TMP/cache digest=\${2#/nix/store/} needs=
  mkdir -p "$cache/nar" && size=$(nix-store -q --size "$2") && hash=$(nix-store -q --hash "$2") && refs=$(nix-store -q --references "$2") || return 1
  for ref in $refs; do needs="$needs \${ref##*/}"; done
  gzip -dc "$1" | tail -c +9 | head -c "$size" >"$cache/nar/1"
  echo "StoreDir: /nix/store" >"$cache/nix-cache-info"
  printf '%s\n' "StorePath: $2" "URL: nar/1" "Compression: none" "NarHash: $hash" "NarSize: $size" "References: \${needs# }" >"$cache/\${digest%%-*}.narinfo"
  nix-store --repair-path "$2" --option substitute true --option substituters "file://$cache" --option require-sigs false 2>"$K_TMP/output" || { cat "$K_TMP/output" >&2 && return 1; }
  rm -rf "$cache"
}
cd "$K_RUN/blobs" || exit 1
imports= came=
while read -r name size how at; do
  [ "$at" != ${path} ] || came=1
  case $how in
    import) imports="$imports $name" ;;
    mend) mend "$name" "$at" </dev/null || exit 1 ;;
  esac
done <"$k_portion_file"
[ -z "$imports" ] || import $imports || exit 1
if [ -n "$came" ]; then
  ${check}
fi
[ -z "$k_more" ] || exit 0
sync`;
}

/** A store path without the folder and the hash. */
function storeName(path: string): string {
  return path.slice("/nix/store/".length + 33);
}

function atGeneration({ profile, generation, backFrom = "" }: Args): ProfileStep {
  // backFrom is compared with the whole store path, or with its name without the hash.
  const isLeft = sh`is_left() {
  at=$(readlink -f "$1")
  case ${backFrom} in /*) ;; *) at=\${at##*/} && at=\${at#*-} ;; esac
  [ "$at" != ${backFrom} ]
}`;
  const find =
    generation === undefined
      ? sh`${isLeft}
now=$(readlink ${profile}) && now=\${now%-link} && now=\${now##*-} to=
for link in ${profile}-*-link; do
  number=\${link#${profile}-} && number=\${number%-link}
  case $number in '' | *[!0-9]*) continue ;; esac
  [ "$number" -lt "\${now:-0}" ] && [ "$number" -gt "\${to:-0}" ] && is_left "$link" || continue
  to=$number
done
[ -n "$to" ] || refuse NIX_GENERATION_MISSING ${`${profile} has no generation before ${backFrom} to go back to`}`
      : sh`to=${generation}
[ -L ${profile}-$to-link ] || {
  all=
  for link in ${profile}-*-link; do
    number=\${link#${profile}-} && number=\${number%-link}
    case $number in '' | *[!0-9]*) ;; *) all="$all $number" ;; esac
  done
  refuse NIX_GENERATION_MISSING ${`${profile} has no generation ${generation}; there is:`}"\${all:- none}"
}`;
  return {
    want: generation === undefined ? { left: "yes" } : { generation: String(generation) },
    probe: sh`${factGeneration(profile)}
if [ -L ${profile} ]; then fact profile "$(readlink -f ${profile})"; else fact profile absent; fi${
      generation === undefined
        ? sh`
${isLeft}
if is_left ${profile}; then fact left yes; else fact left no; fi`
        : sh``
    }`,
    guard: find,
    apply: sh`${find}
nix-env -p ${profile} --switch-generation "$to" >/dev/null && sync`,
    tools: [nixEnv],
  };
}
