import type { Argument, Command, Option } from "commander";
import { commandPath } from "../terminal/wrap-help.ts";
import { type Candidate, type CompletionRequest, valuesOf } from "./values.ts";

/** The candidates for the word to complete; `files`: names of files fit, too. */
export interface Completion {
  readonly candidates: readonly Candidate[];
  readonly files: boolean;
}

/** Completes the last of the words after `kcore`, which may be empty. Nodes are the roster's, so no network is used. */
export async function complete(program: Command, words: readonly string[]): Promise<Completion> {
  const current = words.at(-1) ?? "";
  const { command, pending, operands } = placeOfCursor(program, words.slice(0, -1));
  const completion = await (pending
    ? completeValue(pending, { command, operands, current }, "")
    : current.startsWith("-")
      ? completeOption({ command, operands, current })
      : completeOperand(command, operands, current));
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

async function completeOption(request: CompletionRequest): Promise<Completion> {
  const { command, current } = request;
  const equals = current.indexOf("=");
  if (equals > 0) {
    const option = valueOption(command, current.slice(0, equals));
    return option
      ? completeValue(option, { ...request, current: current.slice(equals + 1) }, current.slice(0, equals + 1))
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

async function completeValue(option: Option, request: CompletionRequest, before: string): Promise<Completion> {
  const word = /<([^>]+)>/.exec(option.flags)?.[1] ?? "";
  const found = option.argChoices
    ? { candidates: option.argChoices.map((value) => ({ value, description: "" })), files: false }
    : await valuesOf(`${option.long ?? ""} ${word}`, request);
  return { ...found, candidates: found.candidates.map(({ value, ...rest }) => ({ value: before + value, ...rest })) };
}

async function completeOperand(command: Command, operands: readonly string[], current: string): Promise<Completion> {
  if (operands.length > 0 || command.commands.length === 0) return completeArgument(command, operands, current);
  const commands = command
    .createHelp()
    .visibleCommands(command)
    .map((inner) => ({ value: inner.name(), description: inner.summary() || inner.description() }));
  // `kcore modules` takes a name as well as a command.
  const { candidates, files } = await completeArgument(command, operands, current);
  return { candidates: [...commands, ...candidates], files };
}

async function completeArgument(command: Command, operands: readonly string[], current: string): Promise<Completion> {
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
export async function printCandidates(program: Command, words: readonly string[]): Promise<void> {
  const { candidates, files } = await complete(program, words);
  const lines = candidates.map(({ value, description }) => `${value}\t${description.replaceAll(/\s+/g, " ")}\n`);
  process.stdout.write(lines.join("") + (files ? ":files\n" : ""));
}
