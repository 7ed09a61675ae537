import { mkdir } from "node:fs/promises";
import { basename, dirname, resolve } from "node:path";
import { formatBytes } from "#base/units.ts";
import { hashBytes } from "#base/file.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import type { SayProgress } from "#base/tasks.ts";
import { quote } from "#base/quote.ts";
import { cleanText } from "#engine/events/clean.ts";
import { unescapeLine } from "#engine/program/frames.ts";
import { copyText } from "#engine/program/without-runner.ts";
import { type Dialogue, type NodeProgram, ProgramEnded } from "#engine/session/dialogue.ts";
import type { Channel } from "#engine/transport/host.ts";
import { openLocal } from "#engine/transport/local-host.ts";
import type { ErrorCode } from "#errors/codes.ts";
import { type ExitCode, exitCodes, KcoreError } from "#errors/problem.ts";
import { drawFailedAnswers } from "../adhoc/answers.ts";
import { printResult } from "../terminal/format-result.ts";
import { runHere } from "../watch/run-here.ts";
import { requestOf, type RunFlags } from "../watch/run-request.ts";
import { collectSteps, type NodeResult } from "../watch/step-results.ts";
import { type CopyPlan, forNode } from "./copy-plan.ts";
import { showNodes } from "./show-nodes.ts";

export interface CopyFlags extends RunFlags {
  readonly recursive?: boolean;
  /** Of a copied file, never with `recursive`; absent: the source's. */
  readonly mode?: string;
  /** Absent: that of the file that is there, root for a new one. */
  readonly owner?: { readonly user: string; readonly group?: string };
  readonly output: "plain" | "json";
}

/** A copied file or folder, as `-o json` prints it. */
interface Copied {
  readonly destination: string;
  /** Bytes of all its files, and of those contents that went over the line. */
  readonly bytes: number;
  readonly sent: number;
  /** Of a file: its SHA-256 on both sides. */
  readonly sha256?: string;
  /** Of a folder: its files, and those that differed. */
  readonly files?: number;
  readonly filesSent?: number;
}

type CopyEnd = Pick<NodeResult, "node" | "outcome" | "problem"> & Partial<Copied> & { readonly source: string };

/**
 * Copies one source after the other, with all nodes at once, up to the first that fails, and prints the results.
 * @throws KcoreError as `runHere`
 */
export async function copyFiles(flags: CopyFlags, { isFetch, sources, destination, on }: CopyPlan): Promise<ExitCode> {
  const { recursive = false, mode = "-", owner, output } = flags;
  const ends: CopyEnd[] = [];
  let exitCode: ExitCode = exitCodes.done;
  for (const source of sources) {
    if (exitCode !== exitCodes.done) break;
    const sum = isFetch ? undefined : await hashBytes(source).catch(() => undefined);
    const known = sum ? [sum.sha256, `${sum.bytes}`] : [];
    const sender = textOf("c_send", isFetch ? source : resolve(source), recursive ? "1" : "", ...known);
    const receiver = (place: string): string =>
      textOf("c_take", place, basename(resolve(source)), mode, owner?.user ?? "-", owner?.group ?? "-");
    const copied = new Map<string, Copied>();
    const shown = showNodes(output);
    const speak: Dialogue["speak"] = async (node, program) => {
      const here = isFetch ? receiver(await localPlace(forNode(destination, node))) : sender;
      const local = await openLocal("this machine").exec(`c_here=1\n${here}`);
      copied.set(node, await carry(local, program, isFetch, shown.sayOf(node)));
    };
    const steps = collectSteps();
    const request = requestOf({ ...flags, on }, { kind: "exec", argv: ["cp", source], shell: false });
    const dialogue = { text: `c_here=\n${isFetch ? sender : receiver(destination)}`, speak };
    const { model, ...end } = await runHere(flags, request, shown.onEvent, { dialogue });
    await shown.end();
    exitCode = end.exitCode;
    const results = steps.results(model).map(withHint);
    for (const { node, outcome, problem } of results)
      ends.push({ node, source, outcome, ...copied.get(node), ...omitUndefined({ problem }) });
    if (output === "plain") process.stderr.write(drawFailedAnswers(results));
  }
  printResult(ends, output === "json" ? "json" : "text", () => ends.map(drawEnd).join(""));
  return exitCode;
}

function textOf(name: string, ...words: readonly string[]): string {
  return `${copyText()}\n${[name, ...words.map(quote)].join(" ")}`;
}

/** The absolute path of a destination here, whose folder is made; with `/` at its end if it is a folder for sources. */
async function localPlace(path: string): Promise<string> {
  const isFolder = /(^|\/)\.{0,2}$/.test(path);
  const place = resolve(path);
  await mkdir(isFolder ? place : dirname(place), { recursive: true });
  return isFolder ? `${place}/` : place;
}

/** Carries the bytes between both programs until both have ended. @throws KcoreError for a refusal, and a failure here; ProgramEnded */
async function carry(local: Channel, program: NodeProgram, isFetch: boolean, say: SayProgress): Promise<Copied> {
  const [sender, receiver] = isFetch ? [program, local] : [local, program];
  let bytes = 0;
  const pump = async (from: AsyncIterable<Uint8Array>, to: Pick<Channel, "write" | "end">, isSender: boolean) => {
    for await (const chunk of from) {
      await to.write(chunk);
      const [, , total] = /^sending (\d+) (\d+)/m.exec(sender.stderrTail()) ?? [];
      if (isSender && total !== undefined)
        say({ bytes: Math.min((bytes += chunk.length), Number(total)), total: Number(total) });
    }
    to.end();
  };
  let failure: unknown;
  try {
    await Promise.all([pump(sender.stdout, receiver, true), pump(receiver.stdout, sender, false)]);
  } catch (error) {
    failure = error;
    local.close();
  }
  const { code } = await local.exit;
  const said = `${local.stderrTail()}\n${program.stderrTail()}`;
  const [, refused, text = ""] = /^R ([A-Z_]+) (.*)$/m.exec(said) ?? [];
  if (refused !== undefined) throw copyFailure(refused as ErrorCode, unescapeLine(text), isFetch);
  if (failure !== undefined) throw failure as Error;
  if (code !== 0) throw copyFailure("STEP_FAILED", `the copy failed on this machine\n${local.stderrTail()}`, isFetch);
  const [, all, sent, sha256, files, filesSent] = /^sending (\d+) (\d+) (\S+)(?: (\d+) (\d+))?$/m.exec(said) ?? [];
  const [, place] = /^done (.*)$/m.exec(said) ?? [];
  if (place === undefined) throw new ProgramEnded();
  const counts =
    files === undefined ? { sha256: sha256 ?? "" } : { files: Number(files), filesSent: Number(filesSent) };
  return { destination: place, bytes: Number(all), sent: Number(sent), ...counts };
}

function copyFailure(code: ErrorCode, text: string, isFetch: boolean): KcoreError {
  const [message = "", ...lines] = text.trim().split("\n");
  const unsafe = isFetch ? "or copy to a folder of your own" : "a file: --owner USER; a folder: choose one of root's";
  const hint = code === "FILE_PARENT_UNSAFE" ? unsafe : undefined;
  const detail = lines.length === 0 ? undefined : lines.join("\n");
  return new KcoreError({ code, message, hint, detail }, { exitCode: exitCodes.failed });
}

/** A lost connection leaves a part, so the hint of `exec` does not fit. */
function withHint({ node, outcome, problem: found }: NodeResult): NodeResult {
  const problem =
    found?.code === "HOST_LOST" ? { ...found, hint: "the same command again goes on where it ended" } : found;
  const exitCode = outcome === "done" ? 0 : undefined;
  return { node, outcome, stdout: "", stderr: "", ...omitUndefined({ exitCode, problem }) };
}

function drawEnd({ node, source, destination, bytes = 0, sent = 0, sha256, files, filesSent }: CopyEnd): string {
  if (destination === undefined) return "";
  const [whole, part] = [files, filesSent].map((count) => (count === undefined ? "" : `${count} files, `));
  const sizes = `${whole}${formatBytes(bytes)}; sent ${part}${formatBytes(sent)}`;
  return cleanText(`${node}  ${source} → ${destination}  ${sizes}; sha256 ${sha256 ?? "equal on both sides"}\n`);
}
