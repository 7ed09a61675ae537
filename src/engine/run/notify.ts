import { hostname } from "node:os";
import { run } from "#base/process.ts";
import type { RunEventBody } from "#engine/events/event.ts";
import type { Notice } from "#engine/orchestrate/notices.ts";

/** Milliseconds for one notice: the run's end waits for it. */
const limitMs = 10_000;

type Ending = Extract<RunEventBody, { type: "run.finished" }>;

/** The content of a notice: plain JSON, without anything that the record does not show. */
export interface NoticeContent {
  readonly event: Notice["on"][number];
  /** Absent: the notice is about no run. */
  readonly run?: string;
  readonly command: string;
  readonly who: string;
  readonly host: string;
  readonly outcome?: Ending["outcome"];
  readonly changed?: number;
  readonly problem?: string;
  /** By node, the reason of its failure. */
  readonly nodes?: Readonly<Record<string, string>>;
  readonly question?: string;
}

/** Sends the notices of `notify.yaml` for one run. It handles events as they are recorded, with masked secrets. */
export class Notifier {
  readonly #notices: readonly Notice[];
  readonly #deliver: (notice: Notice, content: NoticeContent) => Promise<void>;
  readonly #common: Omit<NoticeContent, "event">;
  readonly #failed: Record<string, string> = {};
  readonly #changed = new Set<string>();

  constructor(
    notices: readonly Notice[],
    { project, ...about }: { readonly project: string } & Pick<NoticeContent, "run" | "command" | "who">,
    deliver: (notice: Notice, content: NoticeContent, project: string) => Promise<void> = deliverNotice,
  ) {
    this.#notices = notices;
    this.#deliver = (notice, content) => deliver(notice, content, project);
    this.#common = { ...about, host: hostname() };
  }

  /** Sends the notices that are due for an event, and resolves with a warning for each notice that failed; undefined: none is due. */
  handle(event: RunEventBody): Promise<readonly string[]> | undefined {
    switch (event.type) {
      case "step.finished":
      case "action.finished": {
        const by = "step" in event ? [event.node, event.stage, event.step] : [event.stage, event.action, event.item];
        if (event.outcome === "changed") this.#changed.add(JSON.stringify(by));
        // The node reverted a change on trial.
        if (event.outcome === "interrupted") this.#changed.delete(JSON.stringify(by));
        return undefined;
      }
      case "node.finished":
        if (event.outcome === "failed" || event.outcome === "unreachable")
          this.#failed[event.node] = event.problem?.message ?? event.outcome;
        return undefined;
      case "question.asked":
        return this.#send({ ...this.#common, event: "question", question: event.question.text });
      case "run.finished":
        return this.#sendEnd(event);
      default:
        return undefined;
    }
  }

  async #sendEnd({ outcome, problem }: Ending): Promise<readonly string[]> {
    const end = { ...this.#common, outcome, changed: this.#changed.size, nodes: this.#failed };
    const content = { ...end, ...(problem && { problem: `${problem.message} [${problem.code}]` }) };
    const isFailure = outcome === "failed" || outcome === "unreachable";
    const of = (event: NoticeContent["event"]) => this.#send({ ...content, event });
    return [...(isFailure ? await of("failure") : []), ...(this.#changed.size > 0 ? await of("change") : [])];
  }

  /** Sends the notices that are due for this content, and resolves with a warning for each notice that failed. */
  send(content: Pick<NoticeContent, "event" | "question" | "problem">): Promise<readonly string[]> {
    return this.#send({ ...this.#common, ...content });
  }

  async #send(content: NoticeContent): Promise<readonly string[]> {
    const due = this.#notices.filter(({ on }) => on.includes(content.event));
    const ends = await Promise.allSettled(due.map((notice) => this.#deliver(notice, content)));
    return ends.flatMap((end, index) =>
      end.status === "rejected"
        ? [`${recipientOf(due[index] as Notice)} was not told: ${(end.reason as Error).message}`]
        : [],
    );
  }
}

/** A notice's name in messages; for a webhook only the host, since the address may be a secret. */
function recipientOf({ command, webhook, mail }: Notice): string {
  return command?.[0] ?? mail ?? new URL(webhook as string).host;
}

async function deliverNotice(
  { command, webhook, mail }: Notice,
  content: NoticeContent,
  project: string,
): Promise<void> {
  const json = `${JSON.stringify(content)}\n`;
  if (webhook !== undefined) {
    const signal = AbortSignal.timeout(limitMs);
    const headers = { "content-type": "application/json" };
    const answer = await fetch(webhook, { method: "POST", body: json, headers, signal, redirect: "error" }).catch(
      () => {
        throw new Error("it does not answer");
      },
    );
    await answer.body?.cancel();
    if (!answer.ok) throw new Error(`it answered ${answer.status}`);
  } else if (mail !== undefined) await runProgram(["sendmail", "-i", "--", mail], mailOf(content, mail), project);
  else await runProgram(command as readonly string[], json, project);
}

/** The text of a mail: its subject is one line of ASCII, its body has the full content. */
function mailOf(content: NoticeContent, to: string): string {
  const subject = `kcore: ${content.event} in ${content.command} on ${content.host}`
    .replaceAll(/[^\x20-\x7e]/g, "?")
    .slice(0, 200);
  const lines = Object.entries(content).map(
    ([key, value]) => `${key}: ${typeof value === "object" ? JSON.stringify(value) : value}`,
  );
  const head = [`To: ${to}`, `Subject: ${subject}`, "MIME-Version: 1.0", "Content-Type: text/plain; charset=utf-8"];
  return [...head, "", ...lines, ""].join("\n");
}

async function runProgram(command: readonly string[], input: string, cwd: string): Promise<void> {
  // sendmail is in a folder that a user's PATH may lack.
  const env = { ...process.env, PATH: `${process.env["PATH"] ?? ""}:/usr/sbin:/usr/lib` };
  const { code, signal } = await run(command, { cwd, env, input, limitMs, ownGroup: true });
  if (code !== 0)
    throw new Error(
      signal === undefined
        ? `exit code ${code}${code === 127 ? " (not found)" : ""}`
        : `ended by ${signal}, after ${limitMs / 1000} s at most`,
    );
}
