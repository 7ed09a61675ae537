import { KcoreError, type Problem } from "#errors/problem.ts";

const MAX_PROBLEMS = 100;

/** Collects problems, so that an operator sees all of them at once, or the first hundred. */
export class Problems {
  readonly #list: Problem[] = [];
  readonly #seen = new Set<string>();

  /** Adds problems. The same problem at the same place counts once, an unknown key even in other words. */
  add(...problems: readonly Problem[]): void {
    for (const problem of problems) {
      const { at, code, message } = problem;
      const key = `${at?.file}:${at?.line}:${at?.column}:${code === "YAML_KEY_UNKNOWN" ? code : message}`;
      if (this.#seen.has(key)) continue;
      this.#seen.add(key);
      if (this.#list.length < MAX_PROBLEMS) this.#list.push(problem);
    }
  }

  /** The result of `work`; undefined if `work` throws a KcoreError, whose problems are added. Other errors are rethrown. */
  attempt<T>(work: () => T): T | undefined {
    try {
      return work();
    } catch (error) {
      return this.#keep(error);
    }
  }

  /** Like `attempt`, for asynchronous work. */
  async attemptAsync<T>(work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work();
    } catch (error) {
      return this.#keep(error);
    }
  }

  #keep(error: unknown): undefined {
    if (!(error instanceof KcoreError)) throw error;
    this.add(...error.problems);
    return undefined;
  }

  get list(): readonly Problem[] {
    return this.#list;
  }

  /** In the order of files and lines. */
  inOrder(): readonly Problem[] {
    return [...this.#list].sort(byPlace);
  }

  /** @throws KcoreError with all problems, in the order of files and lines, if there are any. */
  throwIfAny(): void {
    if (this.#list.length > 0) throw new KcoreError(this.inOrder());
  }
}

function byPlace(a: Problem, b: Problem): number {
  if (a.at === undefined || b.at === undefined) return 0;
  if (a.at.file !== b.at.file) return a.at.file < b.at.file ? -1 : 1;
  return a.at.line - b.at.line || a.at.column - b.at.column;
}
