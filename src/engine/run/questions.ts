import type { Question, RunEventBody } from "#engine/events/event.ts";
import { exitCodes, KcoreError } from "#errors/problem.ts";

export interface QuestionsOptions {
  readonly emit: (event: RunEventBody) => void;
  /** Whether an operator can answer now, or may do so later. */
  readonly mayBeAnswered: () => boolean;
  /** Called with every secret answer before anything else sees it. */
  readonly onSecret: (value: string) => void;
  /** Aborted when the run is stopped: open questions end. */
  readonly stopped: AbortSignal;
  /** Milliseconds that a question waits. */
  readonly patience: number;
  /** The number of questions in earlier parts of the run: ids go on from there, since views know the earlier ones. */
  readonly earlierCount?: number;
}

interface UnansweredQuestion {
  readonly question: Question;
  readonly resolve: (value: string) => void;
}

/** Questions of a run: asked as events, answered by the first view that sends an answer. */
export class Questions {
  readonly #options: QuestionsOptions;
  readonly #open = new Map<string, UnansweredQuestion>();
  #count: number;

  constructor(options: QuestionsOptions) {
    this.#options = options;
    this.#count = options.earlierCount ?? 0;
  }

  /**
   * Asks, and resolves with the first answer.
   * @throws KcoreError QUESTION_UNANSWERED when no operator can answer or none did, INTERRUPTED when the run is stopped
   */
  async ask(fields: Omit<Question, "id">): Promise<string> {
    const { emit, mayBeAnswered, stopped, patience } = this.#options;
    if (stopped.aborted) throw interrupted(fields.text);
    const question: Question = { id: `q${++this.#count}`, ...fields };
    if (!mayBeAnswered()) throw unanswered(question, "no operator is there to answer");
    emit({ type: "question.asked", question });
    const limit = AbortSignal.any([stopped, AbortSignal.timeout(patience)]);
    try {
      return await new Promise<string>((resolve, reject) => {
        this.#open.set(question.id, { question, resolve });
        limit.addEventListener("abort", () =>
          reject(stopped.aborted ? interrupted(question.text) : unanswered(question, "no operator answered in time")),
        );
      });
    } finally {
      if (this.#open.delete(question.id)) emit({ type: "question.answered", id: question.id, by: "nobody" });
    }
  }

  /** Takes an answer; only the first one of an open question counts. */
  answer(id: string, value: string, by: string): void {
    const open = this.#open.get(id);
    if (!open) return;
    this.#open.delete(id);
    if (open.question.secret && value !== "") this.#options.onSecret(value);
    this.#options.emit({ type: "question.answered", id, by });
    open.resolve(value);
  }
}

function interrupted(text: string): KcoreError {
  return new KcoreError(
    { code: "INTERRUPTED", message: `stopped while asking: ${text}` },
    { exitCode: exitCodes.interrupted },
  );
}

function unanswered({ text, kind, param = "", secret }: Question, why: string): KcoreError {
  const hints = {
    confirm: "run it in a terminal, or give --yes",
    passphrase: "run it in a terminal, or give --passphrase-file FILE or KCORE_CA_PASSPHRASE",
    password: "run it in a terminal, or name the password in the roster: sudo: { password: { command: … } }",
    grant: "run it in a terminal, or give --grant DISK:CONTENTS",
    param: `run it in a terminal, or give --set ${param}=${secret ? "env:NAME or file:PATH" : "VALUE"}`,
  } as const;
  return new KcoreError({ code: "QUESTION_UNANSWERED", message: `${why}: ${text}`, hint: hints[kind] });
}
