import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Argument, Command, Option } from "commander";
import { registry } from "#engine/modules/registry.ts";
import { listOrchestrations } from "#engine/orchestrate/load-orchestration.ts";
import { factCatalogue } from "#engine/facts/catalogue.ts";
import type { NodeEntry } from "#engine/roster/roster.ts";
import { scalarsOf } from "#engine/encrypted-values/places.ts";
import { isRunId } from "#engine/run/run-folder.ts";
import { RECIPIENTS } from "#engine/encrypted-values/recipients.ts";
import { isEncrypted } from "#engine/step/encrypted-value.ts";
import { readSource } from "#engine/yaml/read.ts";
import { MAX_ROSTER_BYTES } from "#engine/yaml/scan.ts";
import { statesOf } from "#engine/states/open-states.ts";
import { parsePlainYaml } from "#engine/yaml/plain-yaml.ts";
import { contextFolder } from "#pki/contexts.ts";
import { orchestrationFolders } from "../orchestrate/list-orchestrations.ts";
import { placesOf, projectIfAny } from "../project/find-project.ts";
import { ownRoster } from "../roster/own-roster.ts";
import { knownUpdates } from "../update/updates-folder.ts";
import { kcoreHome } from "../process/kcore-home.ts";
import { commandPath } from "../terminal/wrap-help.ts";

/** The candidates for the word to complete; `files`: names of files fit, too. */
export interface Completion {
  readonly candidates: readonly Candidate[];
  readonly files: boolean;
}

/** Completes the last of the words after `kcore`, which may be empty. Nodes are the roster's, so no network is used. */
export function complete(program: Command, words: readonly string[]): Completion {
  const current = words.at(-1) ?? "";
  const { command, pending, operands } = placeOfCursor(program, words.slice(0, -1));
  const completion = pending
    ? completeValue(command, pending, current, "")
    : current.startsWith("-")
      ? completeOption(command, current)
      : completeOperand(command, operands, current);
  return { ...completion, candidates: completion.candidates.filter(({ value }) => value.startsWith(current)) };
}

interface CursorPlace {
  readonly command: Command;
  /** The option whose value comes next. */
  readonly pending?: Option;
  /** The operands before the word to complete. */
  readonly operands: readonly string[];
}

function placeOfCursor(program: Command, words: readonly string[]): CursorPlace {
  let command = program;
  const operands: string[] = [];
  let pending: Option | undefined;
  let isOver = false;
  for (const word of words) {
    if (pending) pending = undefined;
    else if (word === "--") isOver = true;
    else if (!isOver && word.startsWith("-")) pending = word.includes("=") ? undefined : valueOption(command, word);
    else {
      const inner = isOver || operands.length > 0 ? undefined : subcommandOf(command, word);
      if (inner) command = inner;
      else operands.push(word);
    }
  }
  return { command, operands, ...(pending && { pending }) };
}

function subcommandOf(command: Command, word: string): Command | undefined {
  return command.commands.find((inner) => inner.name() === word || inner.aliases().includes(word));
}

function valueOption(command: Command, word: string): Option | undefined {
  const found = command.options.find(({ short, long }) => word === short || word === long);
  return found?.required || found?.optional ? found : undefined;
}

function completeOption(command: Command, current: string): Completion {
  const equals = current.indexOf("=");
  if (equals > 0) {
    const option = valueOption(command, current.slice(0, equals));
    return option
      ? completeValue(command, option, current.slice(equals + 1), current.slice(0, equals + 1))
      : { candidates: [], files: false };
  }
  const options = command.createHelp().visibleOptions(command);
  return {
    candidates: options.flatMap(({ long, short, description }) => {
      const value = long ?? short;
      return value === undefined ? [] : [{ value, description }];
    }),
    files: false,
  };
}

function completeValue(command: Command, option: Option, current: string, before: string): Completion {
  const word = /<([^>]+)>/.exec(option.flags)?.[1] ?? "";
  const found = option.argChoices
    ? { candidates: option.argChoices.map((value) => ({ value, description: "" })), files: false }
    : valuesOf(`${option.long ?? ""} ${word}`, { command, current });
  return { ...found, candidates: found.candidates.map(({ value, ...rest }) => ({ value: before + value, ...rest })) };
}

function completeOperand(command: Command, operands: readonly string[], current: string): Completion {
  if (operands.length > 0 || command.commands.length === 0) return completeArgument(command, operands, current);
  const commands = command
    .createHelp()
    .visibleCommands(command)
    .map((inner) => ({ value: inner.name(), description: inner.summary() || inner.description() }));
  // `kcore modules` takes a name as well as a command.
  const { candidates, files } = completeArgument(command, operands, current);
  return { candidates: [...commands, ...candidates], files };
}

function completeArgument(command: Command, operands: readonly string[], current: string): Completion {
  const last = command.registeredArguments.at(-1);
  const argument: Argument | undefined =
    command.registeredArguments[operands.length] ?? (last?.variadic ? last : undefined);
  if (!argument) return { candidates: [], files: false };
  if (argument.argChoices)
    return { candidates: argument.argChoices.map((value) => ({ value, description: "" })), files: false };
  const path = commandPath(command).replace(/^kcore /, "");
  return valuesOf(`${path} ${argument.name()}`, { command, current, operands });
}

/** `kcore completion candidates -- WORDS…`, which the shells ask: lines `VALUE<TAB>DESCRIPTION`. */
export function printCandidates(program: Command, words: readonly string[]): void {
  const { candidates, files } = complete(program, words);
  const lines = candidates.map(({ value, description }) => `${value}\t${description.replaceAll(/\s+/g, " ")}\n`);
  process.stdout.write(lines.join("") + (files ? ":files\n" : ""));
}

interface Candidate {
  readonly value: string;
  readonly description: string;
}

interface CompletionRequest {
  readonly command: Command;
  readonly current: string;
  /** Operands that the command line has already. */
  readonly operands?: readonly string[];
}

type CandidateSource = (request: CompletionRequest) => readonly Candidate[];

/** Patterns over `PATH ARGUMENT` of an operand or `--LONG VALUE` of an option, and where their values come from. */
const sources: readonly (readonly [RegExp, CandidateSource | "files"])[] = [
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
  [/^secrets show path$/, ({ operands }) => pathsIn(operands, isEncrypted)],
  [/^secrets set path$/, ({ operands }) => pathsIn(operands, () => true)],
  [/^secrets recipients remove name$/, recipientNames],
  [/ (file|dir|path|certs-dir)$/, "files"],
];

/** The values that fit a place of {@link sources}; none if a file that they come from cannot be read. */
function valuesOf(
  place: string,
  request: CompletionRequest,
): { readonly candidates: readonly Candidate[]; readonly files: boolean } {
  const source = sources.find(([pattern]) => pattern.test(place))?.[1];
  if (source === "files") return { candidates: [], files: true };
  try {
    return { candidates: source?.(request) ?? [], files: false };
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
  return project === undefined ? [] : [...ownRoster(project, { sources: { onlyKept: true } }).nodes.values()];
}

function nodeCandidate({ name, address, dc, roles }: NodeEntry): Candidate {
  return { value: name, description: [address, dc, roles.join(",")].filter((part) => part !== "").join(" ") };
}

/** Names of nodes and the prefixes of terms; behind a prefix such as `role:` its values. */
function targets({ current }: CompletionRequest): readonly Candidate[] {
  const nodes = rosterNodes();
  if (current.startsWith("fact:"))
    return factCatalogue.map(({ name, about }) => ({ value: `fact:${name}`, description: about }));
  const prefix = /^(role|dc|group):/.exec(current)?.[1];
  if (prefix === undefined)
    return [...nodes.map(nodeCandidate), ...["role:", "dc:", "group:", "label:", "fact:"].map((value) => plain(value))];
  const words = { role: (n: NodeEntry) => n.roles, dc: (n: NodeEntry) => [n.dc], group: (n: NodeEntry) => n.groups };
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
