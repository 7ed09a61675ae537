import { expect } from "chai";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { ModuleDefinition, Step, StepContext } from "#engine/step/define.ts";
import { blobOf } from "#engine/step/blob.ts";
import { Secret } from "#engine/step/secret.ts";
import { contextOf, problemsOf, runStepOn, stepOf, type StepRun } from "../steps.ts";
import { ExactMap, expectAs, HasParts, isPlain, InOrder, ShText } from "./expected.ts";
import { makeCasePlace, type CasePlace } from "./place.ts";
import { standIns } from "./stand-ins.ts";
import { fixtures, type Expectation, type Move, type Table } from "./table.ts";

type Load = () => Promise<ModuleDefinition>;

/** Declares the tests of a module's table: the shape of its steps, the arguments that it accepts, and its cases on each shell. */
export function describeTable(load: Load, table: Table, shells: readonly string[]): void {
  for (const [sentence, expectations] of Object.entries(table.step))
    it(sentence, async () => {
      const module = await load();
      for (const expectation of [expectations].flat()) await expectStep(module, table, expectation);
    });
  for (const [sentence, { takes = [], refuses = [] }] of Object.entries(table.arguments))
    it(sentence, async () => {
      const { args: schema } = await load();
      const parse = (args: object) => schema.safeParse(filled(merged(table.args, args), nowhere));
      for (const args of takes) expect(parse(args).success, JSON.stringify(args)).to.equal(true);
      for (const entry of refuses) {
        const [args, words] = Array.isArray(entry) ? entry : [entry, ""];
        const { success, error } = parse(args);
        expect(success, JSON.stringify(args)).to.equal(false);
        expect(JSON.stringify(error)).to.contain(words);
      }
    });
  for (const shell of shells)
    if (Object.keys(table.cases).length > 0)
      describe(`on ${shell}`, () => {
        for (const [sentence, moves] of Object.entries(table.cases))
          it(sentence, async () => runCase(await load(), table, shell, moves));
      });
}

async function expectStep(module: ModuleDefinition, table: Table, expectation: Expectation): Promise<void> {
  const { args = {}, context = {}, refused, hides, is, ...wanted } = filled(expectation, nowhere) as Expectation;
  const make = (): Step => stepOf(module, filled(merged(table.args, args), nowhere), contextFor(table, context));
  if (refused !== undefined) {
    expect((await problemsOf(make)).map(({ code }) => code)).to.deep.equal([refused]);
    return;
  }
  const step = make();
  const texts = {
    apply: step.apply?.masked,
    probe: step.probe.masked,
    guard: step.guard?.masked,
    keep: step.keep?.masked,
  };
  for (const [key, value] of Object.entries(wanted)) {
    const found = key in texts ? texts[key as keyof typeof texts] : step[key as keyof Step];
    expectAs(
      found,
      key === "want" && !(value instanceof ExactMap) ? new ExactMap(value as Record<string, unknown>) : value,
      key,
    );
  }
  if (is !== undefined) expectAs(step, is, "the step");
  if (hides !== undefined)
    expect(JSON.stringify(step) + String(step.apply) + String(step.probe), "what is hidden").not.to.contain(hides);
}

function contextFor(
  table: Table,
  { sensitive, runAs, nodeId, onTrial }: NonNullable<Expectation["context"]> = {},
): StepContext {
  return contextOf({
    files: table.project,
    remote: ({ label }) => blobOf(table.project[label] ?? `the table has no file ${label}`),
    // The text shows the template's name and variables.
    renderTemplate: (name, vars) => `${name} ${JSON.stringify(vars)}`,
    ...(sensitive ? { sensitive } : {}),
    ...(runAs === undefined ? {} : { runAs }),
    ...(nodeId === undefined ? {} : { nodeId }),
    ...(onTrial ? { onTrial } : {}),
  });
}

/** All arguments in a table that its module parses: those of steps, accepted lists and cases. */
export function argumentsIn({ args, step, arguments: lists, cases }: Table): readonly unknown[] {
  const given = [
    ...Object.values(step)
      .flat()
      .map((expectation) => expectation.args ?? {}),
    ...Object.values(lists).flatMap(({ takes = [] }) => takes),
    ...Object.values(cases)
      .flat()
      .flatMap((move) => [move.run, move.dry, move.both]),
  ];
  return given.flatMap((own) => (own ? [filled(merged(args, own), nowhere)] : []));
}

interface Case {
  readonly module: ModuleDefinition;
  readonly table: Table;
  readonly place: CasePlace;
  readonly shell: string;
}

/** Makes the moves of a case in order, in a place of its own. @throws an Error for a result that the table does not expect */
export async function runCase(
  module: ModuleDefinition,
  table: Table,
  shell: string,
  moves: readonly Move[],
): Promise<void> {
  const place = await makeCasePlace(table);
  try {
    await makeMoves({ module, table, place, shell }, moves);
  } finally {
    await place.remove();
  }
}

async function makeMoves(given: Case, moves: readonly Move[]): Promise<void> {
  const { table, place } = given;
  const commands = filled(table.commands, place) as Table["commands"];
  prepare(place, filled(table.before, place) as Move);
  for (const [index, move] of moves.entries()) {
    if (move.skips?.includes(given.shell)) return;
    const { commands: more = {}, ...made } = filled(move, place) as Move;
    const bin = standIns({ ...commands, ...more }, place.dir, place.own);
    try {
      await makeMove(given, bin, made);
    } catch (error) {
      if (error instanceof Error) error.message = `move ${index + 1}: ${error.message}`;
      throw error;
    }
    const untaught = join(place.own, "untaught");
    if (existsSync(untaught))
      throw new Error(`move ${index + 1}: a stand-in was not taught: ${readFileSync(untaught, "utf8")}`);
  }
}

function prepare(place: CasePlace, { write = {}, sh }: Move): void {
  for (const [path, text] of Object.entries(write)) place.write(path, text);
  if (sh !== undefined) place.sh(sh);
}

async function makeMove({ module, table, place, shell }: Case, bin: Record<string, string>, move: Move): Promise<void> {
  prepare(place, move);
  const calls = join(place.own, "calls");
  rmSync(calls, { force: true });
  const context = contextFor(table, move.context);
  const { due, unsure, granted, plan } = move;
  const env = { ...(filled(table.env, place) as Table["env"]), ...move.env };
  const given = Object.fromEntries(
    Object.entries({ due, unsure, granted, env, plan }).filter(([, value]) => value !== undefined),
  );
  const run = (args: object, dryRun: boolean): Promise<StepRun> => {
    const step = stepOf(module, merged(filled(table.args, place) as object, args), context);
    const kept = table.state === "kept" ? { stateDir: place.dir } : {};
    return runStepOn(place.shell(shell), step, { bin, dryRun, ...kept, ...given });
  };
  if (move.dry !== undefined) compare(await run(move.dry ?? {}, true), move);
  if (move.both !== undefined) {
    compare(await run(move.both ?? {}, true), move);
    compare(await run(move.both ?? {}, false), move);
  }
  if (move.run !== undefined)
    if (move.ends === "converges") {
      compare(await run(move.run ?? {}, false), { ...move, ends: "changed" });
      if (move.calls !== undefined) expectAs(textOf(calls), move.calls, "calls");
      compare(await run(move.run ?? {}, false), { ends: "ok" });
    } else compare(await run(move.run ?? {}, false), move);
  if (move.calls !== undefined && move.ends !== "converges") expectAs(textOf(calls), move.calls, "calls");
  for (const [path, text] of Object.entries(move.leaves ?? {})) expectAs(place.read(path), text, path);
  if (move.holds !== undefined) place.sh(move.holds);
}

const textOf = (path: string): string => (existsSync(path) ? readFileSync(path, "utf8") : "");

const compared = ["have", "now", "stdout", "stderr", "shown", "rc", "status", "notes"] as const;

function compare(run: StepRun, move: Move): void {
  const description = JSON.stringify(run);
  const { ends, refused } = move;
  if (refused !== undefined) {
    const { code, message, detail } = typeof refused === "string" ? { code: refused } : refused;
    expectAs(run.outcome, "failed", description);
    expectAs(run.problem?.code, code, description);
    if (message !== undefined) expectAs(run.problem?.message, message, "the message");
    if (detail !== undefined) expectAs(run.problem?.detail, detail, "the detail");
  } else if (ends !== undefined) expectAs(run.outcome, ends, description);
  for (const key of compared) if (move[key] !== undefined) expectAs(run[key], move[key], key);
}

/** The table's arguments with those of a case; null removes an argument. */
function merged(below: object, args: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries({ ...below, ...args }).filter(([, value]) => value !== null));
}

const nowhere = { dir: "/dir", port: 1 };

/** Replaces `$DIR`, `$PORT` and `$FIXTURES` in all texts of a value. */
function filled(value: unknown, place: Pick<CasePlace, "dir" | "port">): unknown {
  const given: Readonly<Record<string, string>> = { DIR: place.dir, PORT: String(place.port), FIXTURES: fixtures };
  const fill = (text: string): string =>
    text.replaceAll(/\$(DIR|PORT|FIXTURES)\b/g, (_, name: string) => given[name] ?? "");
  const inside = (item: unknown): unknown => {
    if (item === "$PORT") return place.port;
    if (typeof item === "string") return fill(item);
    if (Array.isArray(item)) return item.map(inside);
    if (item instanceof Secret) return new Secret(fill(item.reveal()));
    if (item instanceof ShText) return new ShText(fill(item.text));
    if (item instanceof HasParts) return new HasParts(inside(item.parts) as string[], inside(item.none) as string[]);
    if (item instanceof InOrder) return new InOrder(item.parts.map(fill));
    if (item instanceof ExactMap) return new ExactMap(inside(item.entries) as Record<string, unknown>);
    if (!isPlain(item)) return item;
    return Object.fromEntries(Object.entries(item).map(([key, entry]) => [fill(key), inside(entry)]));
  };
  return inside(value);
}
