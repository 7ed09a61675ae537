import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { parsePlainYaml } from "#engine/yaml/plain-yaml.ts";
import { TestProject, type CommandEnd } from "#support/kcore.ts";

interface Seed {
  readonly hostKey: string;
  readonly fingerprint: string;
  readonly pinnedIn?: string;
  readonly files: Readonly<Record<string, string>>;
}

describe("kcore roster user-data", () => {
  let project: TestProject;
  const at = (name: string): string => join(project.path, name);
  const userData = (...words: readonly string[]): Promise<CommandEnd> =>
    project.call(["roster", "user-data", "n4", ...words]);
  const seed = async (...words: readonly string[]): Promise<Seed> => {
    const { code, stdout, stderr } = await userData("-o", "json", ...words);
    expect(code, stderr).to.equal(0);
    return JSON.parse(stdout) as Seed;
  };
  const roster = (): string => readFileSync(join(project.project, "roster/nodes.yaml"), "utf8");
  const secretIn = (text = ""): string =>
    (parsePlainYaml(text) as { ssh_keys: { ed25519_private: string } }).ssh_keys.ed25519_private;

  beforeEach(() => {
    project = new TestProject();
    const entry = "{ address: 192.0.2.14, user: ops, identityFile: ../key }";
    project.write({ "project/roster/nodes.yaml": `nodes:\n  # the new one\n  n4: ${entry}\n` });
  });
  afterEach(() => project.remove());

  it("pins a key that ssh-keygen reads, before the first boot, and uses the same one the next time", async () => {
    const first = await seed();
    expect(roster()).to.contain(`hostKeys: [${first.hostKey}]`).and.contain("# the new one");
    writeFileSync(at("host"), secretIn(first.files["user-data"]), { mode: 0o600 });
    const half = execFileSync("ssh-keygen", ["-y", "-f", at("host")], { encoding: "utf8" });
    expect(half.split(" ").slice(0, 2).join(" ").trim()).to.equal(first.hostKey);
    expect(execFileSync("ssh-keygen", ["-lf", at("host")], { encoding: "utf8" })).to.contain(first.fingerprint);
    expect(first.files["user-data"]).to.contain(readFileSync(at("key.pub"), "utf8").split(" ")[1]);
    const kept = readdirSync(at("home/host-keys")).map((name) => join(at("home/host-keys"), name));
    expect(kept.map((file) => statSync(file).mode & 0o777)).to.deep.equal([0o600]);

    const again = await userData();
    expect(secretIn(again.stdout)).to.equal(secretIn(first.files["user-data"]));
    expect(again.stderr).to.contain("the output holds the private host key of n4");
    expect(await seed()).not.to.have.property("pinnedIn");
  });

  it("keeps a pinned key that it did not make, unless --renew replaces it", async () => {
    const first = await seed();
    const pin = `ssh-ed25519 ${readFileSync(at("key.pub"), "utf8").split(" ")[1]}`;
    project.write({ "project/roster/nodes.yaml": roster().replace(first.hostKey, pin) });
    const refused = await userData();
    expect(refused.code).to.equal(2);
    expect(refused.stderr).to.contain("[HOST_KEY_CHANGED]").and.contain("kcore roster user-data n4 --renew");
    const renewed = await seed("--renew");
    expect(renewed.pinnedIn).to.equal("roster/nodes.yaml");
    expect(roster()).to.contain(renewed.hostKey).and.not.contain(pin);
    expect(renewed.hostKey).not.to.equal(first.hostKey);
  });

  it("takes the public keys of --key, and names it where the roster has no key", async () => {
    execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-C", "a laptop", "-f", at("other")]);
    const { files } = await seed("--key", at("other.pub"), "--key", at("key.pub"));
    const { users } = parsePlainYaml(files["user-data"] ?? "") as {
      users: readonly { ssh_authorized_keys: string[] }[];
    };
    expect(users[0]?.ssh_authorized_keys).to.have.length(2);
    expect(users[0]?.ssh_authorized_keys[0]).to.equal(readFileSync(at("other.pub"), "utf8").trim());
    // OpenSSH's format shows the public half, also behind a passphrase.
    execFileSync("ssh-keygen", ["-q", "-p", "-P", "", "-N", "a phrase", "-f", at("key")]);
    execFileSync("mv", [at("key.pub"), at("elsewhere")]);
    expect((await seed()).files["user-data"]).to.contain(readFileSync(at("elsewhere"), "utf8").split(" ")[1]);
    project.write({ "project/roster/nodes.yaml": "nodes:\n  n4: { address: 192.0.2.14 }\n" });
    expect((await userData()).stderr)
      .to.contain("[USAGE]")
      .and.contain("--key FILE.pub");
    expect(roster()).not.to.contain("hostKeys");
  });

  it("--seed writes files that only the owner may read, and no network of an earlier call", async () => {
    const vars = "vars: { bootNetwork: { name: eth0, addresses: [192.0.2.14/24], gateways: [192.0.2.1] } }";
    const before = roster();
    project.write({ "project/roster/nodes.yaml": before.replace("key }", `key, ${vars} }`) });
    const { stdout } = await userData("--seed", at("seed"));
    expect(stdout)
      .to.match(/^n4 {2}SHA256:\S+ {2}pinned in roster\/nodes\.yaml\n/)
      .and.contain(at("seed"));
    expect(readdirSync(at("seed"))).to.deep.equal(["meta-data", "network-config", "user-data"]);
    for (const name of readdirSync(at("seed"))) expect(statSync(at(`seed/${name}`)).mode & 0o777, name).to.equal(0o600);
    project.write({ "project/roster/nodes.yaml": roster().replace(/, vars: \{[^]*?\} \}/, "") });
    expect((await userData("--seed", at("seed"))).stdout).to.contain("pinned already");
    expect(readdirSync(at("seed"))).to.deep.equal(["meta-data", "user-data"]);
  });

  /** The environment in which only this program makes images. */
  const withTool = (name?: string): Readonly<Record<string, string>> => {
    mkdirSync(at("bin"));
    if (name !== undefined) symlinkSync(`/usr/bin/${name}`, at(`bin/${name}`));
    return { PATH: at("bin") };
  };

  for (const tool of ["xorriso", "genisoimage"])
    it(`--iso makes an image by ${tool}, in which cloud-init finds the files`, async () => {
      const words = ["roster", "user-data", "n4", "--iso", at("n4.iso"), "-o", "json"];
      const { code, stdout, stderr } = await project.call(words, withTool(tool));
      expect(code, stderr).to.equal(0);
      const isoinfo = (...args: readonly string[]): string =>
        execFileSync("isoinfo", [...args, "-i", at("n4.iso")], { encoding: "utf8" });
      expect(isoinfo("-d")).to.match(/^Volume id: cidata$/m);
      const { files } = JSON.parse(stdout) as Seed;
      for (const [name, text] of Object.entries(files)) expect(isoinfo("-R", "-x", `/${name}`), name).to.equal(text);
      expect(statSync(at("n4.iso")).mode & 0o777).to.equal(0o600);
      expect(readdirSync(project.path).filter((name) => name.startsWith(".seed-"))).to.deep.equal([]);
    });

  it("--iso names the packages where no program makes images, and pins nothing", async () => {
    const words = ["roster", "user-data", "n4", "--iso", at("n4.iso")];
    const { code, stderr } = await project.call(words, withTool());
    expect(code).to.equal(2);
    expect(stderr).to.contain("[TOOL_MISSING]").and.contain("xorriso or genisoimage").and.contain("--seed DIR");
    expect(roster()).not.to.contain("hostKeys");
  });
});
