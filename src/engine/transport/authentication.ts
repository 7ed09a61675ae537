import { callbackify } from "node:util";
import ssh2 from "ssh2";
import type {
  AuthHandlerMiddleware,
  Client,
  IdentityCallback,
  ParsedKey,
  SignCallback,
  SigningRequestOptions,
} from "ssh2";
import type { AgentKey } from "./ssh-agent.ts";
import type { Identity } from "./login-keys.ts";
import { signNextRequest } from "./ssh2-internals.ts";

/** One login: offers its keys, or its password, in turn, and keeps the outcome for messages. */
export interface Authentication {
  readonly offers: "keys" | "password";
  readonly handler: AuthHandlerMiddleware;
  readonly tried: string[];
  /** The number of keys that were not offered. */
  readonly unoffered: number;
  /** The methods that the server accepts, by its last answer. */
  methods: readonly string[];
  /** The server accepted a key or the password, and wants a second factor. */
  partial: boolean;
  /** No key, and no password, is left to offer: ssh2's next error is final. */
  exhausted: boolean;
}

/** An authentication by public keys only, never with the agent forwarded (S-9). */
export function createAuthentication(
  client: Client,
  user: string,
  identities: readonly Identity[],
  onFailure: (error: unknown) => void,
): Authentication {
  const waiting = [...identities];
  const state: Authentication = {
    offers: "keys",
    tried: [],
    get unoffered() {
      return waiting.length;
    },
    methods: [],
    partial: false,
    exhausted: false,
    handler(methods, partialSuccess, next) {
      if (methods) state.methods = methods as readonly string[];
      state.partial ||= partialSuccess === true;
      const identity = methods && !state.methods.includes("publickey") ? undefined : waiting.shift();
      if (!identity) {
        state.exhausted = true;
        next(false as never);
        return;
      }
      state.tried.push(`${identity.label} (${identity.key.type})`);
      if (identities.length === 1) signNextRequest(client, identity, onFailure);
      next(
        identity.agent
          ? { type: "agent", username: user, agent: new SingleKeyAgent(identity.agent) }
          : { type: "publickey", username: user, key: identity.key as never },
      );
    },
  };
  return state;
}

/** An agent with one key: ssh2 would offer all keys of an agent in a row, but kcore decides about each. */
class SingleKeyAgent extends ssh2.BaseAgent<ParsedKey> {
  readonly #agentKey: AgentKey;

  constructor(agentKey: AgentKey) {
    super();
    this.#agentKey = agentKey;
  }

  override getIdentities(done: IdentityCallback<ParsedKey>): void {
    done(undefined, [this.#agentKey.key]);
  }

  override sign(
    _key: ParsedKey,
    data: Buffer,
    options: SigningRequestOptions | SignCallback,
    done?: SignCallback,
  ): void {
    const callback = typeof options === "function" ? options : done;
    const hash = typeof options === "function" ? undefined : (options.hash as "sha256" | "sha512" | undefined);
    callbackify(this.#agentKey.sign)(data, hash, (error, signature) => callback?.(error ?? undefined, signature));
  }
}
