import { askInTurn } from "#api/ask-in-turn.ts";
import type { Controllers } from "#api/ask.ts";
import { ApiRefusal, type ApiClient } from "#api/client.ts";
import { formatEndpoint, parseEndpoint, type ApiEndpoint } from "#api/endpoint.ts";
import { KcoreError } from "#errors/problem.ts";
import type { Answer } from "./requests.ts";
import type { RolloutWorld } from "./world.ts";

/** A client in the simulated network. */
export interface SimClient {
  /** The client's place in the network: `b`, the bastion, or `ID*`, a node. */
  readonly from: string;
  readonly role: "node" | "operator";
  readonly id: string;
  readonly timeoutMs: number;
  readonly isPatient: boolean;
  /** The controllers' ids, in the order in which they are tried. */
  readonly controllers: readonly string[];
  /** Aborts when the client's process ends. */
  readonly signal?: AbortSignal;
  /** Called with each answer when a controller sends it. */
  readonly onAnswered?: (answer: Answer) => void;
  /** Called with each arriving answer, also a late or repeated one; true drops the answer. */
  readonly onArrived?: (answer: Answer, isAwaited: boolean) => boolean;
}

/** The controllers, asked in the product's order over the simulated network. */
export function askControllers(world: RolloutWorld, client: SimClient): Controllers {
  const { scheduler } = world;
  const { controllers, signal, isPatient, timeoutMs } = client;
  return askInTurn(
    { endpoints: controllers.map(endpointOf), isPatient, ...(signal && { signal }) },
    {
      connect: (endpoint, options) => connect(world, client, parseEndpoint(endpoint), options.timeoutMs ?? timeoutMs),
      monotonic: () => scheduler.now,
      sleep: (ms, either) => scheduler.sleep(ms, either),
    },
  );
}

/** The endpoint of the controller with this id. */
export function endpointOf(id: string): string {
  return formatEndpoint({ host: id, port: 9090 });
}

function connect(world: RolloutWorld, client: SimClient, endpoint: ApiEndpoint, timeoutMs: number): ApiClient {
  const { from, role, id: caller, signal: always, onAnswered, onArrived } = client;
  const to = endpoint.host;
  const call = (
    method: string,
    body: unknown,
    { id = "", signal }: { readonly id?: string; readonly signal?: AbortSignal } = {},
  ): Promise<unknown> =>
    new Promise((resolve, reject) => {
      const stops = [always, signal].filter((stop) => stop !== undefined);
      for (const stop of stops) stop.throwIfAborted();
      let isAwaited = true;
      const end = (settle: () => void): void => {
        if (!isAwaited) return;
        isAwaited = false;
        cancel();
        for (const stop of stops) stop.removeEventListener("abort", stopped);
        settle();
      };
      const stopped = (): void => end(() => reject(stops.find((stop) => stop.aborted)?.reason as Error));
      for (const stop of stops) stop.addEventListener("abort", stopped);
      const cancel = world.scheduler.after(timeoutMs, () => end(() => reject(unreachable(to))));
      const arrive = (answer: Answer): void => {
        if (onArrived?.(answer, isAwaited) === true) return;
        end(() => ("reply" in answer ? resolve(answer.reply) : reject(refusalOf(endpoint, answer))));
      };
      world.send(from, to, () =>
        world.controller(to).serve({ method, id, body, role, caller }, (answer) => {
          onAnswered?.(answer);
          world.send(to, from, () => arrive(answer));
        }),
      );
    });
  const unknown = (): never => {
    throw new Error("no answer goes on here");
  };
  return { endpoint, call: call as ApiClient["call"], open: unknown, close: () => undefined };
}

function unreachable(controller: string): KcoreError {
  return new KcoreError({ code: "API_UNREACHABLE", message: `no answer of ${controller}` });
}

function refusalOf(endpoint: ApiEndpoint, { refused }: Extract<Answer, { readonly refused: unknown }>): ApiRefusal {
  const { code, message, hint, detail } = refused.toRefusal();
  return new ApiRefusal(endpoint, refused.status, { code, message, hint, detail });
}
