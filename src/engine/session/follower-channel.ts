import { threeTries } from "#errors/three-tries.ts";
import { setImmediate } from "node:timers/promises";
import { countdown } from "#base/wait.ts";
import { exitCodes, KcoreError } from "#errors/problem.ts";
import {
  entryCommand,
  sudoLine,
  sudoMark,
  sudoPasswordLine,
  unlessRoot,
  type RunVariables,
} from "#engine/program/bootstrap.ts";
import { type Frame, FrameReader } from "#engine/program/frames.ts";
import type { Channel, Exit, Host } from "#engine/transport/host.ts";
import { outputBefore } from "#engine/transport/openssh-frame.ts";
import { limitExceeded } from "./node-budget.ts";

export interface FollowerOptions {
  readonly host: Host;
  readonly run: RunVariables;
  /** Input of root's shell, sent without waiting for the shell's first answer unless sudo wants a password. */
  readonly text: string;
  /** Bytes of the journal that the bastion has already; default: none. */
  readonly offset?: number;
  /** `again`: the last password was wrong; then undefined means that there is no other. */
  readonly sudoPassword: (again?: boolean) => Promise<string | undefined>;
  /** With each frame, the bytes of the journal up to its end. */
  readonly onFrame: (frame: Frame, offset: number) => void;
  /** The node exceeded a limit; nothing more is read from this channel. */
  readonly onLimit: (error: KcoreError) => void;
  /** Resolves when the effects of the frames so far are done; nothing more is read before. Default: at once. */
  readonly settled?: () => Promise<void>;
  /** Gets the shell's stderr. With this callback, the text may end the frames, and the rest of stdout is raw bytes. */
  readonly onStderr?: (bytes: Buffer) => void;
  /** Called if the node's shell has not answered within `quiet` milliseconds. */
  readonly onSilence?: () => void;
  readonly quiet?: number;
  /** Milliseconds in which the node's shell must give its first answer; default: a minute. */
  readonly patience?: number;
}

/** A channel to a follower, or to another of kcore's shells that answer in frames. */
export interface FollowerChannel {
  /** Sends commands; resolves once they were given to the connection. A lost connection shows in `closed` alone. */
  send(text: string | Uint8Array): Promise<void>;
  /** Gives another text to the shell, which waits for one; its frames begin anew, at this offset of the journal. */
  begin(text: string, offset: number): void;
  /** Bytes that the node has taken, counted from an arbitrary start. */
  bytesTaken(): number;
  /** Resolves when the channel is gone, with its output outside of frames; never rejects. */
  readonly closed: Promise<string>;
  /** Closes the stdin of the running command, which continues. */
  endInput(): void;
  /** Resolves with the command's exit, once known. */
  readonly exit: Promise<Exit>;
  /** Closes the channel, so the follower ends. */
  end(): void;
}

/**
 * Gives the text to a new shell on the host. A login that is not root becomes root by sudo first.
 * @throws KcoreError SUDO_MISSING, SUDO_PASSWORD_NEEDED, SUDO_PASSWORD_WRONG, SUDO_FAILED; as `Host.exec`
 */
export async function openFollowerChannel(options: FollowerOptions): Promise<FollowerChannel> {
  const { host, run, text } = options;
  if (run.login === "root") return startShell(options, text);

  const follower = await startShell(options, sudoLine(run.nonce) + unlessRoot(run.nonce) + text);
  const answer = await follower.first;
  if (answer !== "password" && answer !== "absent") return follower;
  follower.end();
  if (answer === "absent")
    throw failure(
      "SUDO_MISSING",
      `${host.name}: ${run.login} is not root, and there is no sudo`,
      "install sudo there, or set user: root in the roster",
    );
  let wrong: unknown;
  return threeTries(
    async (again) => {
      const password = await options.sudoPassword(again);
      if (password === undefined) throw again ? wrong : passwordNeeded(options, (await follower.closed).trim());
      try {
        return await withPassword(await startShell(options, `${sudoPasswordLine(run.nonce)}${password}\n`), options);
      } catch (error) {
        wrong = error;
        throw error;
      }
    },
    ["SUDO_PASSWORD_WRONG"],
  );
}

function passwordNeeded({ host, run }: FollowerOptions, output: string): KcoreError {
  return failure(
    "SUDO_PASSWORD_NEEDED",
    `${host.name}: sudo wants a password for ${run.login}`,
    /expired/i.test(output)
      ? `log in as ${run.login} there once and set a new password, or lift its age: chage -M -1 ${run.login}`
      : "give it in the roster as sudo: { password: { command: … } }, or allow NOPASSWD",
    output,
  );
}

async function startShell(options: FollowerOptions, input: string): Promise<StartedShell> {
  const { onStderr } = options;
  let readVerdict = (): void => undefined;
  const takeStderr = (bytes: Buffer): void => {
    onStderr?.(bytes);
    readVerdict();
  };
  const channel = await options.host.exec(entryCommand, { input, onStderr: takeStderr });
  const shell = openFrames(channel, options);
  readVerdict = shell.readVerdict;
  return shell;
}

interface StartedShell extends FollowerChannel {
  readonly first: Promise<FirstAnswer>;
  /** Reads sudo's verdict from its output. */
  readonly readVerdict: () => void;
}

/** Waits for the root shell after the password: sudo would take further input as another password. */
async function withPassword(follower: StartedShell, { host, run, text }: FollowerOptions): Promise<FollowerChannel> {
  const answer = await follower.first;
  if (answer === "root") {
    await follower.send(`${sudoMark(run.nonce)}-go\n${text}`);
    return follower;
  }
  follower.end();
  if (answer === "wrong")
    throw failure(
      "SUDO_PASSWORD_WRONG",
      `${host.name}: sudo refused the password of ${run.login}`,
      "check what sudo: { password: … } in the roster refers to, or type it again",
    );
  const output = (await follower.closed).replaceAll(`${sudoMark(run.nonce)}?`, "").trim();
  throw new KcoreError(
    {
      code: "SUDO_FAILED",
      message: `${host.name}: sudo did not give ${run.login} a root shell`,
      ...(output !== "" && { detail: output }),
      hint: /tty/.test(output)
        ? "remove “Defaults requiretty” for this user in sudoers"
        : `check sudoers for ${run.login}`,
    },
    { exitCode: exitCodes.failed },
  );
}

/** The first answer of a shell: kcore's own hello, a verdict of sudo, or the end of sudo or of the channel. */
type FirstAnswer = "hello" | "password" | "absent" | "root" | "wrong" | "ended" | "closed";

/** Types of frames that a follower sends once. */
const sentOnce: ReadonlySet<string> = new Set(["hello", "runner", "told"]);
/** Milliseconds for which one node's frames may block the event loop. */
const turnMs = 10;
/** Bytes that are read at a time. */
const portionBytes = 16 << 10;

function openFrames(
  channel: Channel,
  { run, offset = 0, onFrame, onLimit, settled, onStderr, onSilence, quiet = 0, patience = 60_000 }: FollowerOptions,
): StartedShell {
  const reader = new FrameReader(run.nonce, offset, onStderr !== undefined);
  // With a password, `cat` feeds sudo and does not end with it: at this mark the bastion closes the stdin of `cat`.
  const commandOutput = outputBefore(`${run.nonce} sudo ended\n`, () => channel.end());
  const { promise: first, resolve: tellFirst } = Promise.withResolvers<FirstAnswer>();
  const mark = sudoMark(run.nonce);
  // A login shell that hangs in its start-up files would keep the connection for ever.
  const cancel = countdown(patience, () => channel.close());
  const silence = onSilence && setTimeout(onSilence, quiet);
  void first.then(() => {
    cancel();
    clearTimeout(silence);
  });
  const seen = new Set<string>();
  let isAnswered = false;
  void first.then(() => (isAnswered = true));
  const takeFrame = (frame: Frame): void => {
    if (frame.type === "sudo") {
      tellFirst(frame.rest as FirstAnswer);
      if (frame.rest === "ended") channel.close();
      return;
    }
    tellFirst("hello");
    if (frame.bytes && frame.type === "raw") {
      const bytes = commandOutput(frame.bytes as Buffer);
      return bytes.length === 0 ? undefined : onFrame({ ...frame, bytes }, 0);
    }
    if (seen.has(frame.type)) throw limitExceeded(run.node, `“${frame.type}” twice`);
    if (sentOnce.has(frame.type)) seen.add(frame.type);
    onFrame(frame, reader.offset);
  };
  let began = performance.now();
  const yieldTurn = async (): Promise<void> => {
    await settled?.();
    if (performance.now() - began < turnMs) return;
    await setImmediate();
    began = performance.now();
  };
  const readVerdict = (): void => {
    if (isAnswered) return;
    const text = `${reader.noise}${reader.tail}\n${channel.stderrTail()}`;
    // A second prompt means that the first password was wrong. The first prompt can lack a line break.
    if (text.split(`${mark}?`).length > 2 || /\bSorry, try again\b/.test(text)) tellFirst("wrong");
    else if (text.includes(`${mark} root\n`)) tellFirst("root");
  };
  const pump = async (): Promise<string> => {
    try {
      for await (const chunk of channel.stdout) {
        for (let at = 0; at < chunk.length; at += portionBytes) {
          for (const frame of reader.push(chunk.subarray(at, at + portionBytes))) {
            takeFrame(frame);
            if (performance.now() - began >= turnMs) await yieldTurn();
          }
          await yieldTurn();
        }
        readVerdict();
      }
      const rest = commandOutput();
      if (rest.length > 0) onFrame({ type: "raw", rest: "", bytes: rest }, 0);
      // A command can close its stdout long before it ends.
      if (onStderr) await channel.exit;
    } catch (error) {
      if (error instanceof RangeError) onLimit(limitExceeded(run.node, error.message));
      else if (error instanceof KcoreError) onLimit(error);
      // With any other error the connection is gone, and the channel ends.
    }
    channel.close();
    tellFirst("closed");
    return `${reader.noise}${reader.tail}${channel.stderrTail()}`;
  };
  const closed = pump();
  const send = async (bytes: string | Uint8Array): Promise<void> => {
    try {
      await channel.write(bytes);
    } catch {
      // A lost connection shows as the end of the channel.
    }
  };
  return {
    first,
    readVerdict,
    exit: channel.exit,
    endInput: () => channel.end(),
    send,
    begin: (text, at) => {
      seen.clear();
      reader.offset = at;
      void send(text);
    },
    bytesTaken: () => channel.bytesTaken(),
    closed,
    end: () => {
      channel.end();
      channel.close();
    },
  };
}

function failure(
  code: "SUDO_MISSING" | "SUDO_PASSWORD_NEEDED" | "SUDO_PASSWORD_WRONG",
  message: string,
  hint: string,
  output = "",
): KcoreError {
  return new KcoreError(
    { code, message, hint, ...(output !== "" && { detail: output }) },
    { exitCode: exitCodes.failed },
  );
}
