import { randomUUID } from "node:crypto";
import { parseEndpoint } from "#api/endpoint.ts";
import { createLog } from "#api/log.ts";
import type { Credentials } from "#api/client.ts";
import { encodeStamp, zero } from "#crdt/hlc.ts";
import { encodePage, PageReader, type Page } from "#crdt/page.ts";
import type { Register } from "#crdt/register.ts";
import { knowBastionCas } from "#pki/chain.ts";
import { dialController } from "#controller/transport/dial.ts";
import { openLink } from "#controller/transport/open-link.ts";
import { eventually } from "./cluster.ts";
import type { TestController } from "./controllers.ts";
import { hangLimit } from "./limit.ts";

type Message = Readonly<Record<string, unknown>> & { readonly t: string };

/** A hand-made controller on the real protocol, which may behave like another version of kcore. */
export interface WirePeer {
  /** All received messages. */
  readonly heard: readonly Message[];
  readonly send: (message: Message) => void;
  /** The first message of a kind, received already or later. */
  readonly next: (t: string) => Promise<Message>;
  /** Pushes a transaction under its own origin. */
  readonly push: (registers: readonly Pick<Register, "key" | "text">[]) => void;
  /** Pulls all registers of the controller. */
  readonly pullAll: () => Promise<readonly Register[]>;
  readonly isClosed: () => boolean;
  readonly close: () => void;
}

const silent = createLog({ write: () => undefined, clock: Date.now });

/** Connects to a controller as the registered controller `id`; `hello` and `welcome` replace fields of its messages. */
export async function openWirePeer(
  controller: TestController,
  {
    id,
    credentials,
    hello = {},
    welcome = {},
  }: {
    readonly id: string;
    readonly credentials: Credentials;
    readonly hello?: object;
    readonly welcome?: object;
  },
): Promise<WirePeer> {
  const endpoint = parseEndpoint(controller.endpoint);
  const { socket, head } = await dialController({
    endpoint,
    credentials,
    cluster: "lab",
    bastion: knowBastionCas(credentials.ca, credentials.cert),
    timeoutMs: hangLimit,
  });
  const heard: Message[] = [];
  const origin = `${id}#1`;
  let isClosed = false;
  let written = 0;
  let send: WirePeer["send"] = () => undefined;
  const answer = (message: Message): void => {
    heard.push(message);
    const wall = Date.now();
    if (message.t === "hello") send({ t: "welcome", proto: 1, walls: [wall, wall], ...welcome });
    if (message.t === "ping") send({ t: "pong", n: message["n"], walls: [wall, wall] });
    const end = { upto: written > 0 ? [[origin, written]] : [], hlc: encodeStamp(zero) };
    if (message.t === "pull")
      send({ t: "page", sync: message["sync"], index: 0, full: false, page: encodePage([]), end });
  };
  openLink({
    socket,
    peer: controller.id,
    initiator: true,
    head,
    log: silent,
    onContact: () => undefined,
    connected: (link) => {
      send = (message) => link.send(message as never);
      const greeting = { cluster: "lab", id, origin, boot: randomUUID(), proto: [1, 1], ready: true, vv: [] };
      send({ t: "hello", ...greeting, ...hello });
      return { received: (value) => answer(value as Message), closed: () => (isClosed = true) };
    },
  });
  return {
    heard,
    send: (message) => send(message),
    next: (t) => eventually(() => heard.find((message) => message.t === t)),
    push(registers) {
      const from = written++;
      const stamped = registers.map((register): Register => {
        const stamp = { ms: Date.now(), c: 0 };
        return { ...register, ...stamp, o: origin, s: written, x: { origins: [], seqs: [] } };
      });
      send({ t: "push", page: encodePage(stamped), origin, from, upto: written });
    },
    async pullAll() {
      const reader = new PageReader();
      send({ t: "pull", sync: 1, vv: [], window: 64 });
      const pages = (): readonly Message[] => heard.filter(({ t, sync }) => t === "page" && sync === 1);
      await eventually(() => pages().some(({ end }) => end !== undefined));
      return pages().flatMap(({ page }) => reader.read(page as Page));
    },
    isClosed: () => isClosed,
    close: () => socket.destroy(),
  };
}
