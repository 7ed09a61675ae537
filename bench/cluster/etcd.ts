import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { issueTo, writeCredentials, type TestCluster } from "#support/cluster.ts";
import { freePort } from "#support/ports.ts";
import { openJsonClient, type JsonClient } from "./keep-alive.ts";

/** One etcd member (Debian's etcd-server) that requires the cluster's certificates, and a client of its JSON gateway. */
export interface EtcdMember {
  readonly client: JsonClient;
  readonly stop: () => Promise<void>;
}

export async function startEtcd(cluster: TestCluster): Promise<EtcdMember> {
  const [client, peer] = [await freePort(), await freePort()];
  const urls = { client: `https://127.0.0.1:${client}`, peer: `http://127.0.0.1:${peer}` };
  const folder = join(cluster.dir, "etcd");
  const files = await writeCredentials(
    folder,
    "controller",
    issueTo(cluster.authority, "controller", crypto.randomUUID()),
  );
  const member = spawn(
    "etcd",
    [
      "--name=bench",
      "--log-level=error",
      `--data-dir=${join(folder, "data")}`,
      `--listen-client-urls=${urls.client}`,
      `--advertise-client-urls=${urls.client}`,
      `--listen-peer-urls=${urls.peer}`,
      `--initial-advertise-peer-urls=${urls.peer}`,
      `--initial-cluster=bench=${urls.peer}`,
      "--client-cert-auth",
      `--trusted-ca-file=${files.caFile}`,
      `--cert-file=${files.certFile}`,
      `--key-file=${files.keyFile}`,
    ],
    { stdio: ["ignore", "ignore", "inherit"] },
  );
  const failed = once(member, "error").then(([error]) => Promise.reject(error as Error));
  const stop = async (): Promise<void> => {
    member.kill("SIGTERM");
    if (member.exitCode === null && member.signalCode === null) await once(member, "exit");
  };
  try {
    await Promise.race([failed, untilListens(client)]);
    return { client: openJsonClient("127.0.0.1", client, cluster.operator), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

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
