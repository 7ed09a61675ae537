import { z } from "zod";
import { defineModule, type StepFacts } from "../step/define.ts";
import { editRefusals, putLines, copyLines, refuseEdit } from "../step/fragments/edit.ts";
import { effectsOfFile, foreseeFile } from "../step/fragments/files.ts";
import { rawSh, sh, type Sh } from "../step/sh.ts";

const HostName = z
  .string()
  .regex(/^[A-Za-z0-9_]([A-Za-z0-9_.-]{0,251}[A-Za-z0-9_])?$/, "must be a host's name: letters, digits, -, _ and dots");

const args = z
  .strictObject({
    address: z
      .union([z.ipv4(), z.ipv6()])
      .optional()
      .describe("The address; with state: absent, all addresses unless given."),
    names: z
      .union([HostName.transform((name) => [name]), z.array(HostName).min(1)])
      .describe("The address's names, one or a list; of a new line the first is the canonical one."),
    move: z.boolean().default(false).describe("Take a name away from another address that has it."),
    state: z.enum(["present", "absent"]).default("present").describe("Whether the address shall have the names."),
  })
  .refine(({ address, state }) => state === "absent" || address !== undefined, "needs an address")
  .refine(({ move, state }) => state === "present" || !move, "move is for state: present")
  .refine(
    ({ address = "", names, state }) =>
      !names.some((name) => name.toLowerCase() === "localhost") ||
      (state === "present" && (address.startsWith("127.") || address === "::1")),
    "localhost is never taken from this machine's own addresses (hosts(5))",
  );

type Args = z.output<typeof args>;

const file = { path: "/etc/hosts", create: true, makeDirs: false, backup: false } as const;

/**
 * ```yaml
 * hosts.entry: { address: 192.0.2.10, names: [n1.example.org, n1] }
 * ```
 * Names of an address in /etc/hosts (hosts(5)). Missing names are added to the address's first line, or as a new line if
 * the address has none. Other names on a line, its comment and all other lines stay. A name has one address of each family,
 * IPv4 and IPv6: a name at another address is refused, unless `move` takes it from there. Addresses are compared as text,
 * without regard to case.
 */
export const hostsEntry = defineModule({
  name: "hosts.entry",
  summary: "Keeps names of an address in /etc/hosts.",
  alsoKnownAs: ["host.present", "server.etc_hosts", "/etc/hosts"],
  args,
  refusals: editRefusals.filter((code) => code !== "FILE_INVALID"),
  step: (given) => ({
    effects: effectsOfFile(file),
    want: wantOf(given),
    probe: sh`${copyLines(file.path)}
${environment(given)} awk ${probing} <"$K_TMP/lines" >"$K_TMP/names" || exit 1
while read -r name found; do fact "$name" "$found"; done <"$K_TMP/names"`,
    guard: sh`${copyLines(file.path)}
${refuseEdit(file.path, true)}
${given.state === "absent" || given.move ? sh`` : refuseMoves(given)}`,
    foresee: foreseeFile(file),
    keep: sh`keep_path ${file.path}`,
    apply: sh`${copyLines(file.path)}
${putLines(file, sh`${environment(given)} awk ${editing} <"$K_TMP/lines"`)}`,
    quiet: true,
  }),
});

function wantOf({ address, names, state }: Args): StepFacts {
  const at = state === "absent" ? "absent" : (address ?? "").toLowerCase();
  return Object.fromEntries(names.map((name) => [name.toLowerCase(), at]));
}

function environment({ address = "", names, state }: Args): Sh {
  const given = [...new Map(names.map((name) => [name.toLowerCase(), name])).values()].join(" ");
  return sh`address=${address} names=${given} wanted=${state}`;
}

/** Refuses names that /etc/hosts gives another address of the same family. */
function refuseMoves({ address = "", names }: Args): Sh {
  return sh`for name in ${names.map((name) => name.toLowerCase())}; do
  found=$(had "$name")
  case $found in
    absent | ${address.toLowerCase()}) ;;
    *) refuse FILE_NOT_EDITABLE "$name stands at $found in /etc/hosts (move: true takes it from there)" ;;
  esac
done`;
}

/** The common part of both awk programs: `concerns` is true for an address whose lines the step reads or changes. */
const common = `
  BEGIN {
    address = tolower(ENVIRON["address"]); count = split(ENVIRON["names"], given, " ")
    for (i = 1; i <= count; i++) wanted[tolower(given[i])]
  }
  function concerns(one) {
    if (address == "") return 1
    return ENVIRON["wanted"] == "absent" ? one == address : (index(one, ":") > 0) == (index(address, ":") > 0)
  }`;

/** Prints a line for each name: the name and its addresses, or absent. */
const probing = rawSh(`'${common}
  {
    sub(/#.*/, "")
    n = split(tolower($0), word, " ")
    if (!concerns(word[1])) next
    for (i = 2; i <= n; i++) if (word[i] in wanted && !((word[i], word[1]) in seen)) {
      seen[word[i], word[1]]
      at[word[i]] = at[word[i]] " " word[1]
    }
  }
  END { for (i = 1; i <= count; i++) { name = tolower(given[i]); print name (name in at ? at[name] : " absent") } }'`);

/** Prints the new file. Other names, blanks and comments stay; a line that loses all its names keeps only its comment. */
const editing = rawSh(`'${common}
  function without(body,   made, kept, blank, one) {
    made = kept = ""
    while (match(body, /[^ \\t]+/)) {
      blank = substr(body, 1, RSTART - 1); one = substr(body, RSTART, RLENGTH); body = substr(body, RSTART + RLENGTH)
      if (made != "" && tolower(one) in wanted) continue
      if (made != "") kept = 1
      made = made blank one
    }
    return kept ? made body : ""
  }
  {
    comment = ""
    if (i = index($0, "#")) { comment = substr($0, i); $0 = substr($0, 1, i - 1) }
    body[NR] = $0; note[NR] = comment
    n = split(tolower($0), word, " ")
    if (n < 2 || !concerns(word[1])) next
    if (ENVIRON["wanted"] == "present" && word[1] == address) {
      if (!first) first = NR
      for (i = 2; i <= n; i++) there[word[i]]
      next
    }
    for (i = 2; i <= n; i++) if (word[i] in wanted) { body[NR] = without($0); if (body[NR] == "" && comment == "") gone[NR]; break }
  }
  END {
    if (ENVIRON["wanted"] == "present") for (i = 1; i <= count; i++) if (!(tolower(given[i]) in there)) more = more " " given[i]
    for (line = 1; line <= NR; line++) {
      if (line == first && more != "") {
        match(body[line], /[ \\t]*$/)
        body[line] = substr(body[line], 1, RSTART - 1) more substr(body[line], RSTART)
      }
      if (!(line in gone)) print body[line] note[line]
    }
    if (!first && more != "") print ENVIRON["address"] more
  }'`);
