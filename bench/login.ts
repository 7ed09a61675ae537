/**
 * Measures a login over SSH with one command against a private sshd (as root): CPU of both sides, the client's writes, and the time behind
 * a line of 100 ms. `node bench/login.ts [LOGINS]`; docs/performance.md has the figures.
 */
import { readFileSync } from "node:fs";
import { Socket } from "node:net";
import { text } from "node:stream/consumers";
import { createTransport } from "#engine/transport/connect.ts";
import { startDelayLine } from "#support/delay-line.ts";
import { startSshd } from "#support/sshd.ts";

const logins = Number(process.argv[2] ?? 200);
const far = 9;
// Debian's sshd has host keys of these types.
const server = await startSshd({ hostKeyTypes: ["ed25519", "ecdsa", "rsa"] });

async function logIn(port: number): Promise<number> {
  const began = performance.now();
  const transport = createTransport({ home: "/nonexistent", knownHostsFiles: [] });
  try {
    const host = await transport.connect(server.endpoint({ port }));
    const channel = await host.exec("cat", { input: "hello" });
    channel.end();
    await text(channel.stdout);
    const took = performance.now() - began;
    await host.close();
    return took;
  } finally {
    await transport.close();
  }
}

/** Milliseconds of CPU of all ended children of this process, with their own children. */
function childrenCpu(): number {
  const fields = readFileSync("/proc/self/stat", "utf8").split(") ")[1]?.split(" ") ?? [];
  return 10 * (Number(fields[13]) + Number(fields[14]));
}

let writes = 0;
const prototype = Socket.prototype as unknown as Record<"_write" | "_writev", (...given: unknown[]) => unknown>;
for (const name of ["_write", "_writev"] as const) {
  const write = prototype[name];
  prototype[name] = function (this: Socket, ...given) {
    writes++;
    return write.apply(this, given);
  };
}

await logIn(server.port);
writes = 0;
const [before, began] = [process.cpuUsage(), performance.now()];
for (let index = 0; index < logins; index++) await logIn(server.port);
const [{ user, system }, took, counted] = [process.cpuUsage(before), performance.now() - began, writes];

const line = await startDelayLine({ target: { port: server.port }, latency: 50 });
const times: number[] = [];
while (times.length < far) times.push(await logIn(line.port));
await line.close();
const children = childrenCpu();
await server.stop();
const served = childrenCpu() - children;

const each = (total: number, count = logins): string => (total / count).toFixed(2);
console.log(
  [
    `${each(took)} ms`,
    `CPU of the client ${each((user + system) / 1000)} ms`,
    `CPU of sshd ${each(served, logins + far + 1)} ms`,
    `${each(counted)} writes`,
    `behind 100 ms: ${Math.round(times.toSorted((a, b) => a - b)[far >> 1] ?? 0)} ms`,
  ].join(", "),
);
