import { createTransport } from "#engine/transport/connect.ts";
import { startDropbear } from "#support/dropbear.ts";
import type { SshServer } from "#support/ssh-server.ts";
import { startSshd } from "#support/sshd.ts";
import { describeTransport, type TransportUnderTest } from "#support/transport-contract.ts";

async function over(starting: Promise<SshServer>, kind: "ssh" | "openssh" = "ssh"): Promise<TransportUnderTest> {
  const server = await starting;
  const transport = createTransport({ home: server.folder });
  return {
    connect: () => transport.connect({ ...server.endpoint(), transport: kind }),
    lose: () => server.dropSessions(),
    stop: async () => {
      await transport.close();
      await server.stop();
    },
  };
}

describeTransport("ssh2 on OpenSSH", () => over(startSshd()));
describeTransport("ssh2 on dropbear", () => over(startDropbear()));
describeTransport("OpenSSH's client on OpenSSH", () => over(startSshd(), "openssh"));
describeTransport("OpenSSH's client on dropbear", () => over(startDropbear(), "openssh"));
describeTransport("local", () => {
  const transport = createTransport({ home: "/nonexistent" });
  const here = { name: "here", transport: "local", address: "localhost", port: 22, user: "root" } as const;
  return Promise.resolve({
    connect: () => transport.connect({ ...here, hostKeys: [], jump: [] }),
    stop: () => transport.close(),
  });
});
