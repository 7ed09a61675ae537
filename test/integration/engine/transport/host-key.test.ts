import { expect } from "chai";
import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { createTransport, type Transport } from "#engine/transport/connect.ts";
import { parseHostKey } from "#engine/transport/host-key.ts";
import { startDelayLine } from "#support/delay-line.ts";
import { codeOf, rejectionOf } from "#support/rejection.ts";
import { makeKey, type SshServer } from "#support/ssh-server.ts";
import { startSshd } from "#support/sshd.ts";

const run = promisify(execFile);

describe("host keys on a real sshd", () => {
  let server: SshServer;
  let transport: Transport;
  let otherKey: string;
  before(async () => {
    server = await startSshd({ hostKeyTypes: ["ed25519", "ecdsa", "rsa"] });
    otherKey = await makeKey(join(server.folder, "other"));
    transport = createTransport({ home: server.folder, knownHostsFiles: [] });
  });
  after(() => server?.stop());

  const fingerprintOf = (key: string) => parseHostKey(key)?.fingerprint ?? "none";
  const keyOf = async (type: string) =>
    (await readFile(join(server.folder, `host_${type}.pub`), "utf8")).split(" ").slice(0, 2).join(" ");
  const withKnownHosts = async (...lines: string[]) => {
    const file = join(server.folder, "known_hosts");
    await writeFile(file, `${lines.join("\n")}\n`);
    return createTransport({ home: server.folder, knownHostsFiles: [file] });
  };

  it("refuses an unknown key, names its fingerprint and the command to trust it, and sends nothing about the user (S-1)", async () => {
    const line = await startDelayLine({ target: server });
    try {
      const error = await rejectionOf(
        transport.connect(server.endpoint({ name: "n1", port: line.port, hostKeys: [] })),
      );
      expect(error.problems[0]?.code).to.equal("HOST_KEY_UNKNOWN");
      expect(error.problems[0]?.message).to.include(fingerprintOf(server.hostKey));
      expect(error.problems[0]?.hint).to.include("kcore roster trust n1");
      expect(error.exitCode).to.equal(1);
      // Version, key exchange and a farewell only.
      expect(line.bytesUp).to.be.lessThan(2500);
      expect(await server.log()).not.to.match(/Accepted|Postponed|authenticating user|Failed/);
    } finally {
      await line.close();
    }
  });

  it("refuses a changed key, names both fingerprints, and sends nothing about the user (S-1, F-23)", async () => {
    const error = await rejectionOf(transport.connect(server.endpoint({ name: "n1", hostKeys: [otherKey] })));
    expect(error.problems[0]?.code).to.equal("HOST_KEY_CHANGED");
    expect(error.problems[0]?.hint).to.include("kcore roster trust --replace n1");
    expect(error.problems[0]?.detail).to.include(fingerprintOf(server.hostKey)).and.include(fingerprintOf(otherKey));
    expect(await server.log()).not.to.match(/Accepted|Postponed|authenticating user|Failed/);
  });

  it("refuses a host that now has a key of another type (S-1, F-23)", async () => {
    const reinstalled = await startSshd({ hostKeyTypes: ["ecdsa"] });
    try {
      const error = await rejectionOf(transport.connect(reinstalled.endpoint({ hostKeys: [otherKey] })));
      expect(error.problems[0]?.code).to.equal("HOST_KEY_CHANGED");
      expect(error.problems[0]?.detail).to.include(fingerprintOf(reinstalled.hostKey));
    } finally {
      await reinstalled.stop();
    }
  });

  for (const type of ["ed25519", "ecdsa", "rsa"])
    it(`requests the pinned type when the host has several keys: ${type}`, async () => {
      const hostKeys = [await keyOf(type)];
      const host = await transport.connect(server.endpoint({ hostKeys }));
      expect(host.fingerprint).to.equal(fingerprintOf(hostKeys[0] ?? ""));
      await host.close();
    });

  it("accepts plain and hashed entries of known_hosts when the roster pins no key", async () => {
    const name = `[127.0.0.1]:${server.port}`;
    for (const hashed of [false, true]) {
      const known = await withKnownHosts(`${name} ${server.hostKey}`);
      if (hashed) await run("ssh-keygen", ["-H", "-f", join(server.folder, "known_hosts")]);
      const host = await known.connect(server.endpoint({ hostKeys: [] }));
      await host.close();
    }
  });

  it("ignores known_hosts when the roster pins a key", async () => {
    const known = await withKnownHosts(`[127.0.0.1]:${server.port} ${server.hostKey}`);
    expect(await codeOf(known.connect(server.endpoint({ hostKeys: [otherKey] })))).to.equal("HOST_KEY_CHANGED");
  });

  it("refuses a revoked key even when it is pinned", async () => {
    const known = await withKnownHosts(`@revoked * ${server.hostKey}`);
    expect(await codeOf(known.connect(server.endpoint()))).to.equal("HOST_KEY_REVOKED");
  });

  it("scans the key that the host proves to hold, without a login", async () => {
    const before = await server.log();
    const key = await transport.scanHostKey(server.endpoint({ hostKeys: [otherKey] }));
    expect(`${key.type} ${key.key}`).to.equal(server.hostKey);
    const { stdout } = await run("ssh-keygen", ["-lf", join(server.folder, "host_ed25519.pub")]);
    expect(stdout).to.include(key.fingerprint);
    expect((await server.log()).slice(before.length)).not.to.match(/Accepted|Postponed|authenticating user/);
  });
});
