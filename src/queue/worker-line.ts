import { KcoreError } from "#errors/problem.ts";
import type { RunEventBody } from "#engine/events/event.ts";
import type { TableStore } from "#engine/partition-backups/saved-tables.ts";
import { Channel } from "./channel.ts";
import type { Command, Report, RequestMethod } from "./messages.ts";

/** Milliseconds for which events wait for others. */
const BATCH_MS = 50;
const MOST_EVENTS = 50;

/** A worker's end of a job: reports to the coordinator, and gets its commands in their order. */
export class WorkerLine {
  readonly name: string;
  readonly #send: (fields: readonly (string | Buffer)[]) => void;
  readonly #reports: Channel;
  readonly #commands: Channel;
  readonly #requests = new Map<number, PromiseWithResolvers<unknown>>();
  readonly #waiting: Command[] = [];
  #next: PromiseWithResolvers<void> | undefined;
  #events: RunEventBody[] = [];
  #timer: NodeJS.Timeout | undefined;
  #count = 0;
  /** Called with an operator's stop at once, before earlier commands have ended. */
  onStop: (how: "stop" | "abort") => void = () => undefined;

  /** `name`: the job's; `session`: a random name of the worker's session of it. `send` appends an entry to the run's stream of reports. */
  constructor(
    runKey: Buffer,
    { name, session }: { readonly name: string; readonly session: string },
    send: (fields: readonly (string | Buffer)[]) => void,
  ) {
    this.name = name;
    this.#send = (fields) => send(["job", name, "session", session, ...fields]);
    const line = `${name} ${session}`;
    this.#reports = new Channel(runKey, `${line} reports`);
    this.#commands = new Channel(runKey, `${line} commands`);
    this.#send(["hello", new Channel(runKey, `${line} hello`).seal({})]);
  }

  /** Takes a command that has come. @throws BadMessage */
  take(bytes: Buffer): void {
    const command = this.#commands.open(bytes) as Command;
    if (command.do === "stop") this.onStop(command.how);
    else if (command.do === "answer") this.#answer(command);
    else this.#push(command);
  }

  /** The next command; `drop` after {@link drop}. */
  async command(): Promise<Command> {
    for (;;) {
      const command = this.#waiting.shift();
      if (command) return command;
      this.#next = Promise.withResolvers();
      await this.#next.promise;
    }
  }

  /** Nothing that still comes counts: the coordinator is gone, or a command was lost. */
  drop(): void {
    for (const { reject } of this.#requests.values())
      reject(new KcoreError({ code: "INTERRUPTED", message: "the run's coordinator is gone" }));
    this.#requests.clear();
    this.#push({ do: "drop" });
  }

  emit(event: RunEventBody): void {
    this.#events.push(event);
    if (this.#events.length >= MOST_EVENTS) return this.#flush();
    this.#timer ??= setTimeout(() => this.#flush(), BATCH_MS);
  }

  report(report: Report): void {
    this.#flush();
    this.#send(["text", this.#reports.seal(report)]);
  }

  /** Asks the coordinator. @throws KcoreError the problems that it answers; INTERRUPTED */
  async request(method: RequestMethod, args: unknown = {}): Promise<unknown> {
    return this.#request(method, args).answer;
  }

  /** Saves of tables, kept by the coordinator. */
  readonly tables: TableStore = {
    open: async () => {
      const { request: table, answer } = this.#request("table.open", {});
      await answer;
      return {
        add: async (gzip) => {
          await this.request("table.add", { table, bytes: Buffer.from(gzip).toString("base64") });
        },
        drop: async () => {
          await this.request("table.drop", { table });
        },
        keep: async (device, occasion) => {
          const { request: kept, answer: saved } = this.#request("table.keep", { table, device, occasion });
          const told = (await saved) as { readonly id: string; readonly isNew: boolean; readonly bytes: number };
          const forget = async (): Promise<void> => {
            await this.request("table.forget", { table: kept });
          };
          return { ...told, forget };
        },
      };
    },
  };

  #request(method: RequestMethod, args: unknown): { readonly request: number; readonly answer: Promise<unknown> } {
    const request = ++this.#count;
    const answer = Promise.withResolvers<unknown>();
    this.#requests.set(request, answer);
    this.report({ tell: "request", request, method, args });
    return { request, answer: answer.promise };
  }

  #answer({ request, value, problems }: Extract<Command, { do: "answer" }>): void {
    const waiting = this.#requests.get(request);
    this.#requests.delete(request);
    if (problems) waiting?.reject(new KcoreError(problems));
    else waiting?.resolve(value);
  }

  #push(command: Command): void {
    this.#waiting.push(command);
    this.#next?.resolve();
  }

  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const events = this.#events.splice(0);
    if (events.length > 0) this.#send(["text", this.#reports.seal({ tell: "events", events })]);
  }
}
