import { questionText } from "#errors/three-tries.ts";
import type { NodeEntry } from "#engine/roster/roster.ts";
import type { SecretReference } from "#engine/params/secret-reference.ts";
import type { RunDependencies } from "./run-types.ts";

/** The secrets of a run on the bastion: each is read or asked for when first needed, anew only after a wrong answer, and kept in memory only. */
export class RunSecrets {
  readonly #deps: Pick<RunDependencies, "ask" | "passphrase" | "readSecret" | "opensCa">;
  readonly #known = new Map<string, Promise<string | undefined>>();
  #passphrase: Promise<string> | undefined;

  constructor(deps: Pick<RunDependencies, "ask" | "passphrase" | "readSecret" | "opensCa">) {
    this.#deps = deps;
  }

  /** The passphrase of the cluster CA's keys; an operator has three tries. @throws KcoreError QUESTION_UNANSWERED, INTERRUPTED */
  clusterPassphrase(): Promise<string> {
    const { passphrase } = this.#deps;
    this.#passphrase ??= passphrase === undefined ? this.#askForCa() : Promise.resolve(passphrase);
    return this.#passphrase;
  }

  /** The node's sudo password, from the roster or an operator; undefined without an answer. @throws KcoreError if the reference is bad */
  sudoPassword({ name, user, sudo }: NodeEntry, again = false): Promise<string | undefined> {
    const text = questionText(`sudo password of ${user} on ${name}`, again);
    // A wrong password of the roster is not tried again: sudo counts the tries.
    if (again && sudo.password) return Promise.resolve(undefined);
    return this.#once(
      `sudo ${name}`,
      () =>
        sudo.password
          ? this.#deps.readSecret(sudo.password)
          : this.#askOperator({ kind: "password", text, node: name, secret: true }),
      again,
    );
  }

  /** The passphrase of an encrypted key file, from the roster or an operator; undefined without an answer. */
  keyPassphrase(file: string, reference?: SecretReference, again = false): Promise<string | undefined> {
    const text = questionText(`Passphrase of the key ${file}`, again);
    return this.#once(
      `key ${file}`,
      () =>
        reference ? this.#deps.readSecret(reference) : this.#askOperator({ kind: "passphrase", text, secret: true }),
      again,
    );
  }

  async #askForCa(): Promise<string> {
    const { ask, opensCa } = this.#deps;
    for (let tries = 1; ; tries++) {
      const text = questionText("Passphrase of the cluster CA’s keys", tries > 1);
      const answer = await ask({ kind: "passphrase", text, secret: true });
      // A third wrong passphrase fails where it is used, with the error of that use.
      if (tries === 3 || opensCa === undefined || (await opensCa(answer))) return answer;
    }
  }

  #askOperator(question: Parameters<RunDependencies["ask"]>[0]): Promise<string | undefined> {
    // The end of the run withdraws its questions; a caller without an answer has an error of its own.
    return this.#deps.ask(question).catch(() => undefined);
  }

  #once(key: string, read: () => Promise<string | undefined>, again = false): Promise<string | undefined> {
    const known = (again ? undefined : this.#known.get(key)) ?? read();
    this.#known.set(key, known);
    return known;
  }
}
