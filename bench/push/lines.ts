import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { portOf, startSlowLine } from "./slow-line.ts";

export interface Lines {
  /** The loopback ports, in the order of the addresses. */
  readonly ports: readonly number[];
  /** Bytes sent to the targets so far, as TCP carries them: encrypted, handshakes included. */
  bytesUp(): Promise<number>;
  stop(): Promise<void>;
}

/**
 * Lines to all addresses, in a process of their own, so that the contender and the lines do not wait for each other.
 */
export async function startLines(addresses: readonly string[], port: number, rtt: number): Promise<Lines> {
  const words = [
    "--disable-warning=ExperimentalWarning",
    import.meta.filename,
    String(rtt),
    String(port),
    ...addresses,
  ];
  const child = spawn(process.execPath, words, { stdio: ["pipe", "pipe", "inherit"] });
  const ended = new Promise((resolve) => child.once("exit", resolve));
  const answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const next = async () => JSON.parse(String((await answers.next()).value)) as unknown;
  return {
    ports: (await next()) as number[],
    async bytesUp() {
      child.stdin.write("bytes\n");
      return (await next()) as number;
    },
    async stop() {
      child.stdin.end();
      await ended;
    },
  };
}

if (import.meta.main) {
  const [rtt, port, ...addresses] = process.argv.slice(2);
  let sent = 0;
  const lines = await Promise.all(
    addresses.map((host) => startSlowLine(host, Number(port), Number(rtt), (bytes) => (sent += bytes))),
  );
  console.log(JSON.stringify(lines.map(portOf)));
  for await (const _ of createInterface({ input: process.stdin })) console.log(sent);
  for (const line of lines) line.close();
}
