import { createTransport } from "#engine/transport/connect.ts";
import { startDropbear } from "#support/dropbear.ts";
import type { SshServer } from "#support/ssh-server.ts";
import { startSshd } from "#support/sshd.ts";
import { describeTransport, type TransportUnderTest } from "#support/transport-contract.ts";

async function over(server: SshServer): Promise<TransportUnderTest> {
  const transport = createTransport({ home: server.folder });
  return await Promise.resolve({
    connect: () => transport.connect(server.endpoint()),
    lose: () => server.dropSessions(),
    stop: async () => {
      await transport.close();
      await server.stop();
    },
  });
}

describeTransport("ssh2 on OpenSSH", async () => over(await startSshd()));
describeTransport("ssh2 on dropbear", async () => over(await startDropbear()));
describeTransport("local", () => {
  const transport = createTransport({ home: "/nonexistent" });
  const endpoint = {
    name: "here",
    transport: "local",
    address: "localhost",
    port: 22,
    user: "root",
    hostKeys: [],
    jump: [],
  } as const;
  return Promise.resolve({ connect: () => transport.connect(endpoint), stop: () => transport.close() });
});
