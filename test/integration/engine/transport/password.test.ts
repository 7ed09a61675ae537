import { execFileSync } from "node:child_process";
import { readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { createTransport } from "#engine/transport/connect.ts";
import type { Endpoint } from "#engine/transport/host.ts";
import { eventually } from "#support/cluster.ts";
import { rejectionOf } from "#support/rejection.ts";
import type { SshServer } from "#support/ssh-server.ts";
import { startSshd } from "#support/sshd.ts";

const problemOf = async (promise: Promise<unknown>) => (await rejectionOf(promise)).problems[0];
const password = "only this: ünd “x”";

/** A real sshd with accounts of its own, which accepts root's password and no key. */
describe("installing a key by password", () => {
  const transport = createTransport({ home: "/nonexistent" });
  const connect = (endpoint: Endpoint) => transport.connect(endpoint);
  const admitKey = async (endpoint: Endpoint, given: string) =>
    (await transport.admitKey(endpoint, { password: given })).label;
  const hash = execFileSync("openssl", ["passwd", "-6", "-stdin"], { input: `${password}\n`, encoding: "utf8" }).trim();
  const ways = {
    password: ["PasswordAuthentication yes"],
    "keyboard-interactive": ["UsePAM yes", "KbdInteractiveAuthentication yes"],
  };

  for (const [way, config] of Object.entries(ways))
    describe(`by ${way}`, () => {
      let server: SshServer;
      let file: string;
      const endpoint = (fields: Partial<Endpoint> = {}) => server.endpoint({ name: "n1", ...fields });

      beforeEach(async () => {
        server = await startSshd({ config: [...config, "PermitRootLogin yes"] });
        const shadow = await readFile(join(server.folder, "shadow"), "utf8");
        await writeFile(join(server.folder, "shadow"), shadow.replace("root:*:", `root:${hash}:`));
        file = join(server.home("root"), ".ssh/authorized_keys");
        await rm(file);
      });
      afterEach(() => server.stop());

      it("takes one login, and later logins need the key only (S-9)", async () => {
        expect((await problemOf(connect(endpoint())))?.code).to.equal("AUTH_FAILED");
        expect(await admitKey(endpoint(), password)).to.equal(server.identityFile);
        expect((await stat(file)).mode & 0o777).to.equal(0o600);
        await (await connect(endpoint())).close();
        await admitKey(endpoint(), password);
        const lines = (await readFile(file, "utf8")).trimEnd().split("\n");
        expect(lines, "once, however often").to.have.length(1);
        execFileSync("ssh-keygen", ["-lf", file]);
        const log = await server.log();
        expect(log.match(/Accepted (password|keyboard-interactive)/g)).to.have.length(2);
        expect(log).not.to.contain(password);
      });

      it("keeps the present keys, even after a last line without a line feed", async () => {
        await writeFile(file, "# mine\nssh-ed25519 AAAA somebody", { mode: 0o600 });
        await admitKey(endpoint(), password);
        const lines = (await readFile(file, "utf8")).split("\n");
        expect(lines.slice(0, 2)).to.deep.equal(["# mine", "ssh-ed25519 AAAA somebody"]);
        expect(lines[2]).to.match(/^ssh-ed25519 \S+ kcore$/);
        await (await connect(endpoint())).close();
      });

      it("is reported as failed when the file of keys cannot be written", async () => {
        await rm(join(file, ".."), { recursive: true });
        await writeFile(join(file, ".."), "no folder");
        const problem = await problemOf(admitKey(endpoint(), password));
        expect(problem?.code).to.equal("KEY_NOT_ADMITTED");
        expect(problem?.message).to.match(/^n1 let root log in, but did not take the key: .*\.ssh/);
      });

      it("tries a wrong password once, and none before the host key is verified (S-1, S-9)", async () => {
        const wrong = await problemOf(admitKey(endpoint(), "wrong"));
        expect(wrong).to.deep.include({
          code: "AUTH_FAILED",
          message: "n1 does not let root log in with this password",
        });
        const failures = /Failed (password|keyboard-interactive)|authentication failure/g;
        // The server answers first, and logs later.
        expect(await eventually(async () => (await server.log()).match(failures) ?? undefined)).to.have.length(1);
        const other = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGZha2VmYWtlZmFrZWZha2VmYWtlZmFrZWZha2VmYWtlZmFr";
        const changed = await problemOf(admitKey(endpoint({ hostKeys: [other] }), password));
        expect(changed?.code).to.equal("HOST_KEY_CHANGED");
        expect((await server.log()).match(/Accepted/g)).to.equal(null);
      });
    });

  it("is refused with the accepted methods when the server takes no passwords", async () => {
    const server = await startSshd();
    try {
      const refused = await problemOf(admitKey(server.endpoint(), password));
      expect(refused).to.deep.include({ code: "AUTH_FAILED" });
      expect(refused?.detail).to.equal("it accepts: publickey");
    } finally {
      await server.stop();
    }
  });
});
