import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Command } from "commander";
import { registry } from "#engine/modules/registry.ts";
import { listOrchestrations } from "#engine/orchestrate/load-orchestration.ts";
import { factCatalogue } from "#engine/facts/catalogue.ts";
import type { NodeEntry } from "#engine/roster/roster.ts";
import { scalarsOf } from "#engine/encrypted-values/places.ts";
import { isRunId } from "#engine/run/run-folder.ts";
import { RECIPIENTS } from "#engine/encrypted-values/recipients.ts";
import { isSealed } from "#engine/step/sealed.ts";
import { readSource } from "#engine/yaml/read.ts";
import { MAX_ROSTER_BYTES } from "#engine/yaml/scan.ts";
import { statesOf } from "#engine/states/open-states.ts";
import { parsePlainYaml } from "#engine/yaml/plain-yaml.ts";
import { orchestrationFolders } from "../orchestrate/list-orchestrations.ts";
import { placesOf, projectIfAny } from "../project/find-project.ts";
import { ownRoster } from "../roster/own-roster.ts";
import { contextFolder } from "#pki/contexts.ts";
import { knownUpdates } from "../update/updates-folder.ts";
import { kcoreHome } from "../process/kcore-home.ts";

export interface Candidate {
  readonly value: string;
  readonly description: string;
}

interface Asked {
  readonly command: Command;
  readonly current: string;
  /** Operands that the command line has already. */
  readonly operands?: readonly string[];
}

type Source = (asked: Asked) => readonly Candidate[];

/** Patterns over `PATH ARGUMENT` of an operand or `--LONG VALUE` of an option, and where their values come from. */
const sources: readonly (readonly [RegExp, Source | "files"])[] = [
  [/^update cluster \S+ name$/, () => unique(contexts().flatMap(({ folder }) => knownUpdates(folder)))],
  [/^config (use|delete)-context name$|^--context /, () => contexts().map(({ name }) => plain(name))],
  [/^-s |^--controller |^--join-controller /, () => contexts().flatMap(({ endpoints }) => endpoints.map(plain))],
  [/^--on |^orchestrate target$| target$/, targets],
  [/^orchestrate name$/, orchestrations],
  [/^state (show name|apply names)$/, states],
  [/^runs .* (id|a|b)$/, runIds],
  [/^orchestrate show name$/, orchestrations],
  [/^modules name$/, () => [...registry.keys()].map(plain)],
  [/^--dc/, () => unique(rosterNodes().map(({ dc }) => dc))],
  [/^--role /, () => unique(rosterNodes().flatMap(({ roles }) => roles))],
  [/^--(node|target-node) (?!host)| nodes?$/, () => rosterNodes().map(nodeCandidate)],
  [/^secrets show path$/, ({ operands }) => pathsIn(operands, isSealed)],
  [/^secrets set path$/, ({ operands }) => pathsIn(operands, () => true)],
  [/^secrets recipients remove name$/, recipientNames],
  [/ (file|dir|path|certs-dir)$/, "files"],
];

/** The values that fit a place; empty if none is known. Problems of files are ignored here. */
export function valuesOf(
  place: string,
  asked: Asked,
): { readonly candidates: readonly Candidate[]; readonly files: boolean } {
  const source = sources.find(([pattern]) => pattern.test(place))?.[1];
  if (source === "files") return { candidates: [], files: true };
  try {
    return { candidates: source?.(asked) ?? [], files: false };
  } catch {
    return { candidates: [], files: false };
  }
}

function plain(value: string): Candidate {
  return { value, description: "" };
}

function unique(values: readonly string[]): readonly Candidate[] {
  return [...new Set(values)].toSorted().map(plain);
}

function rosterNodes(): readonly NodeEntry[] {
  const project = projectIfAny(undefined);
  return project === undefined ? [] : [...ownRoster(project, { sources: { kept: true } }).nodes.values()];
}

function nodeCandidate({ name, address, dc, roles }: NodeEntry): Candidate {
  return { value: name, description: [address, dc, roles.join(",")].filter((part) => part !== "").join(" ") };
}

/** Names; and `role:R`, `dc:D`, `group:G` once the word begins so. */
function targets({ current }: Asked): readonly Candidate[] {
  const nodes = rosterNodes();
  if (current.startsWith("fact:"))
    return factCatalogue.map(({ name, about }) => ({ value: `fact:${name}`, description: about }));
  const prefix = /^(role|dc|group):/.exec(current)?.[1];
  if (prefix === undefined)
    return [...nodes.map(nodeCandidate), ...["role:", "dc:", "group:", "label:", "fact:"].map((value) => plain(value))];
  const words = { role: (n: NodeEntry) => n.roles, dc: (n: NodeEntry) => [n.dc], group: (n: NodeEntry) => n.groups };
  return unique(nodes.flatMap(words[prefix as keyof typeof words]).map((value) => `${prefix}:${value}`));
}

/** Offers the newest runs by the last four digits of their ids; whole ids too once the operator has begun to type. */
function runIds({ current }: Asked): readonly Candidate[] {
  const runs = join(projectIfAny(undefined) ?? "", ".kcore", "runs");
  const ids = readdirSync(runs).filter(isRunId).sort().reverse().slice(0, 30);
  const short = ids.map((id) => ({ value: id.slice(-4), description: id }));
  return [plain("last"), ...short, ...(current === "" ? [] : ids.map(plain))];
}

function orchestrations(): readonly Candidate[] {
  return [...listOrchestrations(orchestrationFolders(undefined)).keys()].map(plain);
}

function states(): readonly Candidate[] {
  return statesOf(placesOf(projectIfAny(undefined)))
    .list()
    .map(({ name, description = "" }) => ({ value: name, description }));
}

/** Names and endpoints of `~/.kcore/config`, read without checks, because completion only shows them. */
function contexts(): readonly {
  readonly name: string;
  readonly endpoints: readonly string[];
  readonly folder: string;
}[] {
  const config = parsePlainYaml(readFileSync(join(kcoreHome(), "config"), "utf8"));
  const entries = (config as { contexts?: Record<string, { controllers?: unknown }> } | null)?.contexts ?? {};
  return Object.entries(entries).map(([name, { controllers }]) => ({
    name,
    endpoints: Array.isArray(controllers) ? controllers.map(String) : [],
    folder: contextFolder(kcoreHome(), name),
  }));
}

/** Keys of a file of the project that lead to values, as `kcore secrets` takes them. */
function pathsIn([file = ""]: readonly string[] = [], wanted: (value: unknown) => boolean): readonly Candidate[] {
  const path = [resolve(file), join(projectIfAny(undefined) ?? "", file)].find((one) => existsSync(one)) ?? "";
  return scalarsOf(readSource(path, { maxBytes: MAX_ROSTER_BYTES }), wanted).map(({ path: keys }) =>
    plain(keys.join(".")),
  );
}

function recipientNames(): readonly Candidate[] {
  const root = readSource(join(projectIfAny(undefined) ?? "", RECIPIENTS));
  return root.kind === "map" ? [...root.entries.keys()].map(plain) : [];
}
