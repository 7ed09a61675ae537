import { createServer, request } from "node:https";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { StringDecoder } from "node:string_decoder";
import { Chance } from "../checker/random.ts";
import { Liar, type Habit, type Talk } from "./liar.ts";

/** What the process is started with, as one line of JSON on its stdin; it lies until that is closed. */
export interface LiarPlan {
  readonly id: string;
  readonly cluster: string;
  readonly host: string;
  readonly port: number;
  readonly credentials: { readonly ca: string; readonly cert: string; readonly key: string };
  readonly victims: readonly { readonly host: string; readonly port: number }[];
  readonly seed: number;
  readonly only?: readonly Habit[];
}

const upgrade = "kcore-replication/1";
const largest = 8 * 1024 * 1024;

/** Answers and dials as a controller does: TLS 1.3 both ways, an HTTP upgrade, then lines of JSON. */
function lie({ id, cluster, host, port, credentials, victims, seed, only }: LiarPlan): void {
  const chance = new Chance(seed);
  const liar = new Liar({ id, cluster, wall: Date.now, chance: chance.fork(), only: only && new Set(only) });
  const server = createServer({ ...credentials, minVersion: "TLSv1.3", requestCert: true, rejectUnauthorized: true });
  server.on("upgrade", (_request, socket: Duplex) => {
    socket.write(`HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: ${upgrade}\r\n\r\n`);
    speak(liar, socket, "", "who dialled");
  });
  server.on("request", (_request, response) => void response.writeHead(404).end());
  server.on("tlsClientError", () => undefined);
  server.listen(port, host, () => process.stdout.write("listens\n"));

  const dial = (victim: LiarPlan["victims"][number]): void => {
    const headers = { connection: "upgrade", upgrade };
    const dialled = request({
      ...credentials,
      ...victim,
      path: "/v1/replicate",
      agent: false,
      minVersion: "TLSv1.3",
      headers,
    });
    dialled.on("error", () => undefined);
    dialled.on("response", (response) => response.resume());
    dialled.on("upgrade", (_response, socket: Socket, head: Buffer) =>
      speak(liar, socket, head.toString("utf8"), victim.host),
    );
    dialled.setTimeout(2_000, () => dialled.destroy());
    dialled.end();
  };
  const goOn = (): void => {
    if (liar.isStorming) liar.closeAll();
    if (chance.isLucky(0.3)) dial(chance.pick(victims));
    liar.tick();
    setTimeout(goOn, chance.between(20, 200));
  };
  goOn();
}

function speak(liar: Liar, socket: Duplex, head: string, peer: string): void {
  let rest = "";
  let talk: Talk | undefined;
  const write = (text: string): void => {
    // Who does not read is not waited for.
    if (!socket.destroyed && socket.writableLength < 4 * largest) socket.write(text);
  };
  const read = (text: string): void => {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) talk?.received(parse(line));
  };
  const decoder = new StringDecoder("utf8");
  socket.on("data", (chunk: Buffer) => read(decoder.write(chunk)));
  socket.on("error", () => socket.destroy());
  socket.on("close", () => talk?.closed());
  talk = liar.connected({
    peer,
    send: (message) => write(`${JSON.stringify(message)}\n`),
    raw: write,
    close: () => void socket.destroy(),
  });
  read(head);
}

function parse(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

let given = "";
process.stdin.setEncoding("utf8");
process.stdin.on("data", (text: string) => {
  given += text;
  const end = given.indexOf("\n");
  if (end < 0) return;
  lie(JSON.parse(given.slice(0, end)) as LiarPlan);
  given = "";
});
process.stdin.once("end", () => process.exit(0));
