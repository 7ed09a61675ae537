import { shellUnusable } from "#engine/transport/host-problems.ts";
import { constants } from "node:os";
import { within } from "#base/wait.ts";
import { exitCodes, KcoreError, type Problem } from "#errors/problem.ts";
import type { NodeOutcome } from "#engine/events/event.ts";
import { shapeFacts } from "#engine/facts/shape.ts";
import type { Frame } from "#engine/program/frames.ts";
import { runnerlessText, type RunnerlessRequest } from "#engine/program/without-runner.ts";
import type { UnresolvedStep } from "#engine/states/planned-step.ts";
import type { Exit, Host } from "#engine/transport/host.ts";
import { outputAfter } from "#engine/transport/openssh-frame.ts";
import { connectFollower, isHostGone } from "./connect-follower.ts";
import { type Dialogue, NodeProgram, ProgramEnded } from "./dialogue.ts";
import { endGroup } from "./end-group.ts";
import type { FollowerChannel } from "./follower-channel.ts";
import { NodeBudget, setFact } from "./node-budget.ts";
import { connectionLost, followerFailed, holderOf, nodeLocked, unreachableCodes } from "./problems.ts";
import {
  runVariables,
  type NodeSession,
  type OpenSession,
  type SessionOptions,
  type StageWork,
  type WorkResult,
} from "./session.ts";
import { newStream, outputOf, rawBytes } from "./step-output.ts";

export interface RunnerlessOptions {
  /** The request to a node if the work has no step. */
  readonly query: "ping" | "facts" | "holder" | "unlock";
  /** The run whose lock `unlock` frees; absent: any run. */
  readonly run?: string;
  /** The stdin of a command; called once per node. */
  readonly stdin: () => AsyncIterable<Uint8Array>;
  /** Takes the place of the command and its streams. */
  readonly dialogue?: Dialogue | undefined;
}

/**
 * Opens sessions without a runner, and so without lock and journal: a channel runs one shell. A step's apply runs once; after a lost
 * connection it is not resumed.
 */
export function runnerlessSessions(how: RunnerlessOptions): OpenSession {
  return (options) => new RunnerlessSession(options, how);
}

interface ShellEnd {
  readonly exit: Exit;
  /** Output beside the frames. */
  readonly output: string;
}

class RunnerlessSession implements NodeSession {
  readonly exchanges = 0;
  readonly #options: SessionOptions;
  readonly #how: RunnerlessOptions;
  readonly #stopping = new AbortController();
  #host: Host | undefined;
  /** Ends the running command. */
  #end: (() => Promise<void>) | undefined;

  constructor(options: SessionOptions, how: RunnerlessOptions) {
    this.#options = options;
    this.#how = how;
  }

  async perform(work: readonly StageWork[]): Promise<WorkResult> {
    const [stage] = work;
    const [draft] = stage?.drafts ?? [];
    try {
      const problem = stage && draft ? await this.#command(stage.stage, draft) : undefined;
      if (!draft) await this.#query();
      return this.#result(work, this.#isStopped ? "interrupted" : problem ? "failed" : "done", problem);
    } catch (error) {
      if (!(error instanceof KcoreError)) throw error;
      const [problem] = error.problems as [Problem];
      const outcome = unreachableCodes.has(problem.code) ? "unreachable" : "failed";
      return this.#result(work, this.#isStopped ? "interrupted" : outcome, problem);
    }
  }

  get #isStopped(): boolean {
    return this.#stopping.signal.aborted;
  }

  #result(work: readonly StageWork[], outcome: NodeOutcome, problem?: Problem): WorkResult {
    const finishedStages = new Set(outcome === "done" ? work.map(({ stage }) => stage) : []);
    return { outcome, registered: new Map(), finishedStages, ...(problem && { problem }) };
  }

  async #query(): Promise<void> {
    const { emit, node } = this.#options;
    const facts: Record<string, string> = {};
    const budget = new NodeBudget(node.name, () => 0);
    const { query, run = "" } = this.#how;
    const { name, stateDir } = node;
    const isUnlock = query === "holder" || query === "unlock";
    const what = isUnlock ? ({ kind: "unlock", stateDir, run, isLook: query === "holder" } as const) : { kind: query };
    let holder = "";
    let isFreed = false;
    await this.#runShell(what, ({ type, rest }) => {
      if (type === "fact") setFact(facts, rest.slice(rest.indexOf(" ") + 1), budget);
      if (type === "holder") holder = rest;
      isFreed ||= type === "freed";
    });
    if (query === "facts") emit({ type: "node.facts", node: name, facts: shapeFacts(facts) });
    if (!isUnlock) return;
    const held = holderOf(holder);
    const by = holder === "" ? "nobody" : `run ${held.run} of ${held.who}`;
    emit({ type: "node.milestone", node: name, milestone: isFreed ? `let go by ${by}` : `held by ${by}` });
    if (query === "unlock" && holder !== "" && !isFreed && (run === "" || run === held.run))
      throw new KcoreError(nodeLocked(name, holder, ""), { exitCode: exitCodes.failed });
  }

  /** Runs the command of the only step; returns the problem of a failed command. */
  async #command(stage: string, draft: UnresolvedStep): Promise<Problem | undefined> {
    const { emit, node } = this.#options;
    const rendered = draft.render({ steps: new Map() });
    if (rendered.kind !== "step") throw new Error(`“${draft.title}” is no command`);
    const { dialogue } = this.#how;
    const program = dialogue && new NodeProgram();
    let speaking: Promise<Problem | "cut" | undefined> | undefined;
    const text = dialogue?.text ?? rendered.plan.step.apply?.render({ secret: String, blob: String }) ?? "";
    const step = { node: node.name, stage, step: draft.id, title: draft.title, module: draft.module };
    const streams = { out: newStream(), err: newStream() };
    const emitOutput = (stream: "out" | "err", bytes: Uint8Array): void => {
      if (program) return program.take(stream, bytes);
      for (const made of outputOf(streams[stream], bytes))
        emit({ type: "step.output", node: node.name, step: draft.id, stream, text: made.text, ...rawBytes(made) });
    };
    let began: number | undefined;
    /** Stderr that arrived before the frame for the start of the command. */
    const early: Uint8Array[] = [];
    const takeStderr = (bytes: Uint8Array): void =>
      void (began === undefined ? early.push(bytes) : emitOutput("err", bytes));
    const takeFrame = ({ type, rest, bytes }: Frame, channel: Promise<FollowerChannel>): void => {
      if (type !== "raw") return;
      if (bytes) return emitOutput("out", bytes);
      began = Date.now();
      emit({ type: "step.started", ...step });
      for (const one of early.splice(0)) emitOutput("err", one);
      void channel.then((opened) => {
        this.#end = () => this.#endGroup(rest, opened);
        if (this.#isStopped) void this.#end();
        // Awaited below, perhaps much later.
        if (program) (speaking = this.#speak(program, opened)).catch(() => undefined);
        else void this.#feed(opened);
      });
    };
    const { exit, output } = await this.#runShell({ kind: "exec", text }, takeFrame, takeStderr, program);
    this.#end = undefined;
    const spoken = await speaking;
    const code = exit.code ?? (exit.signal && 128 + (constants.signals[exit.signal as NodeJS.Signals] ?? 0));
    const duration = Date.now() - (began ?? Date.now());
    const finished = { type: "step.finished", ...step, position: draft.at, duration } as const;
    if (typeof spoken === "object" && !this.#isStopped && !(await isHostGone(this.#host))) {
      emit({ ...finished, outcome: "failed", problem: spoken });
      return spoken;
    }
    if (began !== undefined && code === 0 && spoken !== "cut" && !this.#isStopped) {
      emit({ ...finished, outcome: "changed", always: true });
      return undefined;
    }
    if (began !== undefined && typeof code === "number" && !this.#isStopped) {
      const message = `“${draft.title}” failed with exit code ${code}`;
      const detail = program?.stderrTail().trim();
      const problem: Problem = { code: "STEP_FAILED", message, ...(detail && { detail }) };
      emit({ ...finished, outcome: "failed", problem, exitStatus: code });
      return problem;
    }
    if (began !== undefined) emit({ ...finished, outcome: "interrupted" });
    if (this.#isStopped) return undefined;
    throw await this.#endedEarly(output, began !== undefined);
  }

  /** Runs a shell on the node until its end. @throws KcoreError */
  async #runShell(
    what: RunnerlessRequest,
    onFrame: (frame: Frame, channel: Promise<FollowerChannel>) => void,
    onStderr?: (bytes: Uint8Array) => void,
    program?: NodeProgram,
  ): Promise<ShellEnd> {
    const { promise: opened, resolve } = Promise.withResolvers<FollowerChannel>();
    const run = runVariables(this.#options);
    let hasAnswered = false;
    let problem: Problem | undefined;
    const limit = (error: KcoreError): void => void (problem ??= error.problems[0]);
    const commandStderr = outputAfter(`${run.nonce}\n`, () => undefined);
    const channel = await connectFollower({
      session: this.#options,
      run,
      attempt: 1,
      stopping: this.#stopping.signal,
      mayStop: true,
      text: runnerlessText(run, what),
      sudoPassword: this.#options.sudoPassword,
      onHost: (host) => (this.#host = host),
      onFrame: (frame) => {
        hasAnswered = true;
        if (frame.type === "fatal") {
          problem ??= followerFailed(run.node, frame.rest);
          // A forced command that echoes its input would never end by itself.
          void opened.then((channel) => channel.end());
        }
        onFrame(frame, opened);
      },
      onLimit: limit,
      ...(program && { settled: () => program.settled() }),
      onStderr: (bytes) => onStderr?.(commandStderr(bytes)),
    });
    resolve(channel);
    const end = (): void => channel.end();
    // A command would continue without its channel, so it is ended on the node instead.
    if (what.kind !== "exec") this.#stopping.signal.addEventListener("abort", end);
    const output = await channel.closed;
    const exit = await channel.exit;
    if (problem) throw new KcoreError(problem, { exitCode: exitCodes.failed });
    if (!hasAnswered || (what.kind !== "exec" && exit.code === undefined))
      throw await this.#endedEarly(output, hasAnswered);
    return { exit, output };
  }

  /** The error for a shell that ended too early. */
  async #endedEarly(output: string, hasAnswered: boolean): Promise<KcoreError> {
    const { node } = this.#options;
    const isGone = await isHostGone(this.#host);
    const lost = connectionLost(node.name, hasAnswered ? "" : output);
    if (!isGone && !hasAnswered)
      return new KcoreError(shellUnusable(node.name, lost.detail), { exitCode: exitCodes.failed });
    const hint = "whether the command finished is unknown; one that neither reads nor writes may still run there";
    return new KcoreError({ ...lost, ...(hasAnswered && { hint }) }, { exitCode: exitCodes.unreachable });
  }

  /** Speaks with the program; returns the problem that ended it, or that the program ended it. */
  async #speak(program: NodeProgram, channel: FollowerChannel): Promise<Problem | "cut" | undefined> {
    program.open(channel);
    try {
      await this.#how.dialogue?.speak(this.#options.node.name, program);
      channel.endInput();
      return undefined;
    } catch (error) {
      if (error instanceof ProgramEnded) return "cut";
      program.close();
      if (!(error instanceof KcoreError)) throw error;
      return error.problems[0];
    }
  }

  async #feed(channel: FollowerChannel): Promise<void> {
    try {
      for await (const bytes of this.#how.stdin()) await channel.send(bytes);
    } catch {
      // A stdin that cannot be read counts as ended.
    }
    channel.endInput();
  }

  /** Ends the command's process group over a second channel: the first one's stdin belongs to the command. */
  async #endGroup(pid: string, command: FollowerChannel): Promise<void> {
    await endGroup(this.#options, this.#host as Host, pid);
    await within(100, command.exit);
    command.end();
  }

  host(): Host | undefined {
    return this.#host;
  }

  stop(): void {
    this.#stopping.abort();
  }

  abort(): void {
    this.#stopping.abort();
    void this.#end?.();
  }

  async rest(): Promise<void> {
    await this.#host?.close();
    this.#host = undefined;
  }

  async finish(outcome: NodeOutcome, problem?: Problem): Promise<void> {
    await this.rest();
    this.#options.emit({ type: "node.finished", node: this.#options.node.name, outcome, ...(problem && { problem }) });
  }
}
