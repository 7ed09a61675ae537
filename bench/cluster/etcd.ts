import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "#support/ports.ts";
import { load } from "./load.ts";
import { etcd } from "./peers.ts";

/** Acknowledged puts of 256 bytes a second at one etcd member (Debian's etcd-server), for each number of clients. */
export async function etcdRates(
  folder: string,
  clients: readonly number[],
  milliseconds: number,
): Promise<readonly number[]> {
  const [client, peer] = [await freePort(), await freePort()];
  const urls = { client: `http://127.0.0.1:${client}`, peer: `http://127.0.0.1:${peer}` };
  const member = spawn(
    "etcd",
    [
      "--name=bench",
      "--log-level=error",
      `--data-dir=${join(folder, "etcd")}`,
      `--listen-client-urls=${urls.client}`,
      `--advertise-client-urls=${urls.client}`,
      `--listen-peer-urls=${urls.peer}`,
      `--initial-advertise-peer-urls=${urls.peer}`,
      `--initial-cluster=bench=${urls.peer}`,
    ],
    { stdio: "ignore" },
  );
  const failed = once(member, "error").then(([error]) => Promise.reject(error as Error));
  try {
    await Promise.race([failed, untilListens(client)]);
    const { Etcd3 } = etcd();
    const connection = new Etcd3({ hosts: urls.client });
    try {
      const value = "x".repeat(256);
      const put = (who: number, index: number) =>
        connection
          .put(`bench/${who}/${index % 1000}`)
          .value(value)
          .exec();
      const rates: number[] = [];
      for (const count of clients) {
        await load(count, milliseconds / 4, put);
        rates.push((await load(count, milliseconds, put)).rate);
      }
      return rates;
    } finally {
      connection.close();
    }
  } finally {
    member.kill("SIGTERM");
    if (member.exitCode === null && member.signalCode === null) await once(member, "exit");
  }
}

/** etcd's client gives up for a while after a few refused connections, so it comes later. */
async function untilListens(port: number): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const socket = connect(port, "127.0.0.1");
    try {
      await once(socket, "connect");
      return;
    } catch (error) {
      if (attempt === 300) throw error;
      await sleep(100);
    } finally {
      socket.destroy();
    }
  }
}
