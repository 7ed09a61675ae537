import { z } from "zod";
import { KcoreError } from "#errors/problem.ts";
import { blobOf, type Blob } from "../step/blob.ts";
import { defineModule, type StepContext } from "../step/define.ts";
import { AbsolutePath, Duration } from "../step/fields.ts";
import { probeFile, putFile, wantFile, fileStepParts } from "../step/fragments/config-file.ts";
import { fileRefusals } from "../step/fragments/files.ts";
import { lockedApt } from "../step/fragments/packages.ts";
import { fingerprintsOf } from "../step/openpgp.ts";
import type { NodeResource } from "../step/effects.ts";
import { sh, type Sh } from "../step/sh.ts";

const Word = z.string().regex(/^[!-~]+$/, "must be one word");
const Words = z.union([Word.transform((word) => [word]), z.array(Word).min(1)]);
const Uri = z.string().regex(/^[a-z][a-z0-9+-]*:[!-~]+$/, "must be a URI such as https://host/path");
const Fingerprint = z
  .string()
  .transform((text) => text.replaceAll(" ", "").toUpperCase())
  .pipe(z.string().regex(/^([0-9A-F]{40}|[0-9A-F]{64})$/, "must be a whole fingerprint: 40 or 64 hex digits"));

const args = z
  .strictObject({
    name: z
      .string()
      .regex(
        /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/,
        "must be letters, digits, “.”, “_” and “-”, as apt reads no other file",
      )
      .describe("The repository's name, and that of its files on the node."),
    uris: z
      .union([Uri.transform((uri) => [uri]), z.array(Uri).min(1)])
      .optional()
      .describe("The repository's URI, or several with the same content."),
    suites: Words.optional().describe("Suites such as bookworm; one that ends with / is a folder without components."),
    components: Words.optional().describe("Components such as main."),
    types: z
      .array(z.enum(["deb", "deb-src"]))
      .min(1)
      .default(["deb"])
      .describe("Packages, sources, or both."),
    architectures: Words.optional().describe("Only these architectures; else all that dpkg has on the node."),
    key: z.string().optional().describe("The repository's public keys, as gpg --armor --export writes them."),
    source: z.string().optional().describe("Instead of key: a file of the project with the keys."),
    keyring: AbsolutePath.optional().describe("Instead of key: a keyring that is on the node already."),
    trusted: z
      .boolean()
      .default(false)
      .describe("Instead of key: believe what is not signed; for a mirror of one's own."),
    fingerprint: z
      .union([Fingerprint.transform((one) => [one]), z.array(Fingerprint).min(1)])
      .optional()
      .describe("The fingerprint that the key must have; of several keys, each one's."),
    lockTimeout: Duration.default(300).describe("How long to wait for apt's lock."),
    state: z.enum(["present", "absent"]).default("present").describe("Whether apt shall know the repository."),
  })
  .refine(
    ({ state, uris, suites }) => state === "absent" || (uris !== undefined && suites !== undefined),
    "needs uris and suites",
  )
  .refine(
    ({ suites = [], components }) => suites.every((suite) => suite.endsWith("/") === (components === undefined)),
    "components go with suites that do not end with “/”, and only with these",
  )
  .refine(
    ({ state, key, source, keyring, trusted }) =>
      [key, source, keyring, trusted || undefined].filter((given) => given !== undefined).length ===
      (state === "present" ? 1 : 0),
    "give one of key, source, keyring and trusted (none with state: absent)",
  )
  .refine(
    ({ fingerprint, key, source }) => fingerprint === undefined || (key ?? source) !== undefined,
    "fingerprint is for key or source",
  );
type Args = z.output<typeof args>;

/**
 * ```yaml
 * package.repository:
 *   name: example
 *   uris: https://packages.example.org/debian
 *   suites: bookworm
 *   components: [main]
 *   fingerprint: C92C 8DA4 7CCE 6F77 67C2  F2B6 7102 A0D1 04A5 A332
 *   key: |
 *     -----BEGIN PGP PUBLIC KEY BLOCK-----
 *
 *     mDMEawb3zBYJKwYBBAHaRw8BAQdA0v2IHYq7tvGkalaCedXhAhJzKLD6hGpBMI9H
 *     9E/4yhC0EmV4YW1wbGUgcmVwb3NpdG9yeYiQBBMWCAA4FiEEySyNpHzOb3dnwvK2
 *     cQKg0QSlozIFAmsG98wCGwMFCwkIBwIGFQoJCAsCBBYCAwECHgECF4AACgkQcQKg
 *     0QSlozI7GQEAgrwLxLi/0GHtQeUr5cszqwphPH4aYWu4U3Wd8TRyct8A/2orHJ51
 *     Te3eBSXNw0vszlFDqUc7PW/MOO2LIzKHMbMO
 *     =55Ko
 *     -----END PGP PUBLIC KEY BLOCK-----
 * ```
 * A repository of apt: /etc/apt/sources.list.d/NAME.sources (sources.list(5), deb822), which trusts only the key in
 * /etc/apt/keyrings/NAME.asc. Its lists are fetched and verified before it becomes one of apt's sources: a repository that
 * does not answer, or is signed with another key, is refused, and the node's sources stay as they were.
 */
export const packageRepository = defineModule({
  name: "package.repository",
  summary: "Keeps a repository of packages with its key (apt).",
  alsoKnownAs: ["apt_repository", "deb822_repository", "yum_repository", "pkgrepo.managed", "apt.repo", "apt_key"],
  args,
  refusals: ["PACKAGE_LOCKED", "REPOSITORY_UNUSABLE", "TOOL_MISSING", ...fileRefusals],
  step: (given, context) => {
    const { name, state } = given;
    const file = `/etc/apt/sources.list.d/${name}.sources`;
    const ring = `/etc/apt/keyrings/${name}.asc`;
    const key = signingKey(given, context);
    const paths = key === undefined && state === "present" ? [file] : [file, ring];
    const { resources, ...texts } = fileStepParts(paths);
    const reads: readonly NodeResource[] =
      given.keyring === undefined ? resources : [...resources, { is: "existing", path: given.keyring }];
    const common = {
      effects: {
        writes: [...resources, { is: "packages", known: true }],
        reads: [...reads, { is: "program", name: "apt-get" }],
      },
      keep: texts.keep,
      timeout: 900 + given.lockTimeout,
      stall: 300 + given.lockTimeout,
    } as const;
    const readState = sh`have apt-get || refuse TOOL_MISSING "apt-get is not on this node: package.repository is for apt alone; elsewhere file.managed writes the package manager's own file"
${probeFile({ fact: "source", path: file })}
${paths.includes(ring) ? probeFile({ fact: "key", path: ring }) : sh``}`;
    if (state === "absent")
      return {
        ...common,
        want: { source: "absent", key: "absent" },
        probe: readState,
        guard: texts.guard,
        apply: sh`remove_path ${file} 0 || exit 1
[ ! -d /etc/apt/keyrings ] || remove_path ${ring} 0`,
      };
    const text = listText(given, key && ring);
    return {
      ...common,
      want: { ...wantFile({ fact: "source", blob: blobOf(text) }), ...(key && wantFile({ fact: "key", blob: key })) },
      probe: readState,
      guard: sh`${texts.guard}${refuseConflict(file, text)}`,
      foresee: texts.foresee,
      apply: sh`${key === undefined ? sh`` : putKey(key, ring)}
${fetchLists(given, text)}
${putFile({ path: file, blob: blobOf(text) })}`,
      show: sh`! open_file ${file} || cat <&9`,
      shown: text,
    };
  },
});

/**
 * The key's armoured block with one final line break; undefined if the step gives no key.
 * @throws KcoreError REPOSITORY_KEY_INVALID
 */
function signingKey({ name, key, source, fingerprint }: Args, { readFile }: StepContext): Blob | undefined {
  const bytes = source === undefined ? undefined : readFile(source).bytes;
  const given = source === undefined ? key : Buffer.from(bytes ?? "").toString("utf8");
  if (given === undefined) return undefined;
  const text = `${given.replaceAll("\r", "").trim()}\n`;
  const found = fingerprintsOf(text);
  const invalid = (message: string, hint: string): KcoreError =>
    new KcoreError({ code: "REPOSITORY_KEY_INVALID", message, hint });
  if (found.length === 0)
    throw invalid(
      `the key of the repository ${name} is no ASCII-armoured block of OpenPGP public keys`,
      "gpg --armor --export FINGERPRINT writes one",
    );
  if (fingerprint && [...found].toSorted().join(" ") !== fingerprint.toSorted().join(" "))
    throw invalid(
      `the key of the repository ${name} has another fingerprint: ${found.join(" ")}`,
      "compare it with what the repository's owner publishes",
    );
  return blobOf(text);
}

function listText(
  { types, uris = [], suites = [], components, architectures, keyring, trusted }: Args,
  ring?: string,
): string {
  const signed = ring ?? keyring;
  const fields = {
    Types: types,
    URIs: uris,
    Suites: suites,
    Components: components,
    Architectures: architectures,
    "Signed-By": signed && [signed],
    Trusted: trusted ? ["yes"] : undefined,
  };
  return Object.entries(fields)
    .flatMap(([field, words]) => (words ? [`${field}: ${words.join(" ")}\n`] : []))
    .join("");
}

/** Refuses a conflict with other sources: apt reads no source at all while two of them give one repository different keys. */
function refuseConflict(file: string, text: string): Sh {
  const own = file.slice(file.lastIndexOf("/") + 1);
  return sh`rm -rf "$K_TMP/parts" && mkdir "$K_TMP/parts" || exit 1
for part in /etc/apt/sources.list.d/*; do
  [ "$part" = ${file} ] || [ ! -f "$part" ] || ln -s "$part" "$K_TMP/parts/" || exit 1
done
printf %s ${text} >"$K_TMP/parts/"${own} || exit 1
output=$(apt-get indextargets -o Dir::Etc::sourceparts="$K_TMP/parts" 2>&1 >/dev/null) ||
  refuse REPOSITORY_UNUSABLE "apt does not read this repository beside the node's other sources$K_NL$output"`;
}

/**
 * Writes the key before the lists are fetched, since apt's own user must read it. Defines `back`, which restores the old
 * key.
 */
function putKey(key: Blob, ring: string): Sh {
  return sh`rm -f "$K_TMP/key"
[ ! -f ${ring} ] || cp -p ${ring} "$K_TMP/key" || exit 1
${putFile({ path: ring, blob: key })}
back() { if [ -f "$K_TMP/key" ]; then put_file "$K_TMP/key" ${ring} - - -; else remove_path ${ring} 0; fi; }`;
}

/**
 * Fetches only the lists of this repository; if that fails, calls `back` and refuses. `Error-Mode=any` makes temporary
 * failures errors, too (apt-get(8), update).
 */
function fetchLists({ key, source, lockTimeout }: Args, text: string): Sh {
  return sh`${key === undefined && source === undefined ? sh`back() { :; }` : sh``}
${lockedApt({ lockTimeout })}
mkdir -p "$K_TMP/none" && printf %s ${text} >"$K_TMP/new.sources" || exit 1
# A lock that is not obtained in time ends only the subshell, with 99.
: >"$K_TMP/when" && touch -r /var/lib/apt/lists "$K_TMP/when" || exit 1
# Without a signed list of files apt tries each compression of a file: the last line about a file counts.
got() { awk -F'[: ]' '/^Err:/ { bad[$2] } /^(Get|Hit):/ { delete bad[$2] } END { for (one in bad) exit 1 }' "$K_TMP/output"; }
(locked apt-get -q update -o Dir::Etc::sourcelist="$K_TMP/new.sources" -o Dir::Etc::sourceparts="$K_TMP/none" \
  -o APT::Get::List-Cleanup=0 -o APT::Update::Error-Mode=any) >"$K_TMP/output" 2>"$K_TMP/errors"
status=$?
cat "$K_TMP/output"
# The other lists keep their age, which kernel.updated and package.upgraded read.
touch -r "$K_TMP/when" /var/lib/apt/lists
if [ "$status" = 0 ] && got && ! grep -q '^E:\|Failed to fetch' "$K_TMP/errors"; then :; else
  back
  [ "$status" != 99 ] || exit 99
  refuse REPOSITORY_UNUSABLE "apt cannot fetch or verify this repository; the node's sources are as they were$K_NL$(grep '^[EW]:' "$K_TMP/errors" || cat "$K_TMP/errors")"
fi`;
}
