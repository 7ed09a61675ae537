import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Command } from "commander";
import { omitUndefined } from "#base/omit-undefined.ts";
import { type FoundFile, foldersOf, listIn } from "#engine/project/folders.ts";
import { rosterPaths } from "#engine/roster/roster-paths.ts";
import type { NodeEntry } from "#engine/roster/roster.ts";
import { isRunId } from "#engine/run/run-folder.ts";
import { isEncrypted } from "#engine/step/encrypted-value.ts";
import { MAX_ROSTER_BYTES } from "#engine/yaml/regular-file.ts";
import { checkOf, trustOfProcess } from "#engine/project/project.ts";
import { placesOf, projectIfAny } from "../project/find-project.ts";
import { indexed, type IndexedFile } from "./candidate-index.ts";

// A shell waits for a completion, so a library is imported by the source that needs it.

/** A value that fits, and words about it. */
export interface Candidate {
  readonly value: string;
  readonly description: string;
}

export interface CompletionRequest {
  readonly command: Command;
  readonly current: string;
  /** Operands that the command line has already. */
  readonly operands?: readonly string[];
}

type CandidateSource = (request: CompletionRequest) => readonly Candidate[] | Promise<readonly Candidate[]>;

/** Patterns over `PATH ARGUMENT` of an operand or `--LONG VALUE` of an option, and where their values come from; `also`: names of files fit, too. */
const sources: readonly (readonly [RegExp, CandidateSource | "files", also?: "files"])[] = [
  [/^update cluster \S+ name$/, updates],
  [/^config (use|delete)-context name$|^--context /, async () => (await contexts()).map(({ name }) => plain(name))],
  [
    /^-s |^--controller |^--join-controller /,
    async () => (await contexts()).flatMap((one) => one.endpoints.map(plain)),
  ],
  [/^--on |^--limit target|^orchestrate target$| target$/, targets],
  [/^orchestrate name$/, orchestrations],
  [/^state (show name|apply names)$/, states],
  [/^drift names$/, async () => [...orchestrations(), ...(await states())]],
  [/^runs .* (id|a|b)$/, runIds],
  [/^orchestrate show name$/, orchestrations],
  [/^modules name$/, modules],
  [/^--(only|from) /, async (request) => once(await parts(request))],
  [/^--tags /, tags],
  [/^cp paths$/, async () => (await rosterNodes()).map(nodeCandidate).map(asPrefix), "files"],
  [/^--dc/, async () => unique((await rosterNodes()).map(({ dc }) => dc))],
  [/^--role /, async () => unique((await rosterNodes()).flatMap(({ roles }) => roles))],
  [/^--(node|target-node) (?!host)| nodes?$/, async () => (await rosterNodes()).map(nodeCandidate)],
  [/^secrets show path$/, ({ operands }) => pathsIn(operands, isEncrypted)],
  [/^secrets set path$/, ({ operands }) => pathsIn(operands, () => true)],
  [/^secrets recipients remove name$/, recipientNames],
  [/ (file|dir|paths?|certs-dir)$/, "files"],
];

/** The values that fit a place of {@link sources}; none if a file that they come from cannot be read. */
export async function valuesOf(
  place: string,
  request: CompletionRequest,
): Promise<{ readonly candidates: readonly Candidate[]; readonly files: boolean }> {
  const [, source, also] = sources.find(([pattern]) => pattern.test(place)) ?? [];
  if (source === "files") return { candidates: [], files: true };
  // Behind a colon stands a path of a node.
  const files = also === "files" && !request.current.includes(":");
  try {
    return { candidates: (await source?.(request)) ?? [], files };
  } catch {
    return { candidates: [], files };
  }
}

function plain(value: string): Candidate {
  return { value, description: "" };
}

function unique(values: readonly string[]): readonly Candidate[] {
  return [...new Set(values)].toSorted().map(plain);
}

/** A node as completions need it. */
type NodeOutline = Pick<NodeEntry, "name" | "address" | "dc" | "roles" | "groups">;

async function rosterNodes(): Promise<readonly NodeOutline[]> {
  const project = projectIfAny(undefined);
  if (project === undefined) return [];
  const check = checkOf(trustOfProcess(process.env));
  const files = () => rosterPaths(project).map((shown) => ({ path: join(project, shown), shown, check }));
  return indexed(project, "nodes", files, async () => {
    const { ownRoster } = await import("../roster/own-roster.ts");
    const { nodes } = ownRoster(project, { sources: { onlyKept: true } });
    return [...nodes.values()].map(({ name, address, dc, roles, groups }) => ({ name, address, dc, roles, groups }));
  });
}

function nodeCandidate({ name, address, dc, roles }: NodeOutline): Candidate {
  return { value: name, description: [address, dc, roles.join(",")].filter((part) => part !== "").join(" ") };
}

const asPrefix = ({ value, description }: Candidate): Candidate => ({ value: `${value}:`, description });

function once(candidates: readonly Candidate[]): readonly Candidate[] {
  return [...new Map(candidates.toReversed().map((one) => [one.value, one])).values()].toReversed();
}

async function parts({ command, operands = [] }: CompletionRequest) {
  const { partsOf } = await import("./part-names.ts");
  return partsOf(command.name() === "orchestrate" ? "orchestration" : "states", operands);
}

/** The tags of the typed work, behind those before the last comma. */
async function tags(request: CompletionRequest): Promise<readonly Candidate[]> {
  const before = request.current.slice(0, request.current.lastIndexOf(",") + 1);
  const known = (await parts(request)).flatMap((part) => part.tags);
  const typed = before.split(",");
  return unique(known.filter((tag) => !typed.includes(tag))).map(({ value }) => plain(before + value));
}

/** Names of nodes and the prefixes of terms; behind a prefix such as `role:` its values. */
async function targets({ current }: CompletionRequest): Promise<readonly Candidate[]> {
  if (current.startsWith("fact:")) {
    const { factCatalogue } = await import("#engine/facts/catalogue.ts");
    return factCatalogue.map(({ name, about }) => ({ value: `fact:${name}`, description: about }));
  }
  const nodes = await rosterNodes();
  const prefix = /^(role|dc|group):/.exec(current)?.[1];
  if (prefix === undefined)
    return [...nodes.map(nodeCandidate), ...["role:", "dc:", "group:", "label:", "fact:"].map((value) => plain(value))];
  const words = {
    role: (n: NodeOutline) => n.roles,
    dc: (n: NodeOutline) => [n.dc],
    group: (n: NodeOutline) => n.groups,
  };
  return unique(nodes.flatMap(words[prefix as keyof typeof words]).map((value) => `${prefix}:${value}`));
}

/** Offers `last` and the newest runs by the last four digits of their ids; whole ids too once the operator has begun to type. */
function runIds({ current }: CompletionRequest): readonly Candidate[] {
  const runs = join(projectIfAny(undefined) ?? "", ".kcore", "runs");
  const ids = readdirSync(runs).filter(isRunId).sort().reverse().slice(0, 30);
  const short = ids.map((id) => ({ value: id.slice(-4), description: id }));
  return [plain("last"), ...short, ...(current === "" ? [] : ids.map(plain))];
}

function orchestrations(): readonly Candidate[] {
  const files = listIn(foldersOf("orchestrate", placesOf(projectIfAny(undefined))), [".yaml"]);
  return [...files.keys()].map((file) => plain(file.slice(0, -".yaml".length)));
}

function states(): Promise<readonly Candidate[]> {
  const places = placesOf(projectIfAny(undefined));
  const files = () => [...listIn(foldersOf("states", places), [".yaml"]).values()].map(toIndex);
  return indexed(places.project, "states", files, async () => {
    const { statesOf } = await import("#engine/states/open-states.ts");
    return statesOf(places)
      .list()
      .map(({ name, description = "" }) => ({ value: name, description }));
  });
}

function toIndex({ path, shown, folder: { check } }: FoundFile): IndexedFile {
  return { path, shown, ...omitUndefined({ check }) };
}

async function modules(): Promise<readonly Candidate[]> {
  const { registry } = await import("#engine/modules/registry.ts");
  return [...registry.keys()].map(plain);
}

async function updates(): Promise<readonly Candidate[]> {
  const { knownUpdates } = await import("../update/updates-folder.ts");
  return unique((await contexts()).flatMap(({ folder }) => knownUpdates(folder)));
}

/** Names and endpoints of `~/.kcore/config`, read without checks, because completion only shows them. */
async function contexts(): Promise<
  readonly {
    readonly name: string;
    readonly endpoints: readonly string[];
    readonly folder: string;
  }[]
> {
  const { parsePlainYaml } = await import("#engine/yaml/plain-yaml.ts");
  const { contextFolder } = await import("#pki/contexts.ts");
  const { kcoreHome } = await import("../process/kcore-home.ts");
  const config = parsePlainYaml(readFileSync(join(kcoreHome(), "config"), "utf8"));
  const entries = (config as { contexts?: Record<string, { controllers?: unknown }> } | null)?.contexts ?? {};
  return Object.entries(entries).map(([name, { controllers }]) => ({
    name,
    endpoints: Array.isArray(controllers) ? controllers.map(String) : [],
    folder: contextFolder(kcoreHome(), name),
  }));
}

/** Keys of a file of the project that lead to values, as `kcore secrets` takes them. */
async function pathsIn(
  [file = ""]: readonly string[] = [],
  wanted: (value: unknown) => boolean,
): Promise<readonly Candidate[]> {
  const { scalarsOf } = await import("#engine/encrypted-values/places.ts");
  const { readSource } = await import("#engine/yaml/read.ts");
  const path = [resolve(file), join(projectIfAny(undefined) ?? "", file)].find((one) => existsSync(one)) ?? "";
  return scalarsOf(readSource(path, { maxBytes: MAX_ROSTER_BYTES }), wanted).map(({ path: keys }) =>
    plain(keys.join(".")),
  );
}

async function recipientNames(): Promise<readonly Candidate[]> {
  const { RECIPIENTS } = await import("#engine/encrypted-values/recipients.ts");
  const { readSource } = await import("#engine/yaml/read.ts");
  const root = readSource(join(projectIfAny(undefined) ?? "", RECIPIENTS));
  return root.kind === "map" ? [...root.entries.keys()].map(plain) : [];
}
