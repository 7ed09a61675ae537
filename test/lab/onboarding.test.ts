import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import type { Lab, LabNode } from "#lab/lab.ts";
import { on, openBastion, type Bastion } from "#support/deploy.ts";
import { ownLab } from "#support/own-lab.ts";

/** A machine that Debian's cloud-init sets up, and the page on which it is watched. */
describe("the onboarding of a machine", () => {
  let lab: Lab;
  let n1: LabNode;
  let bastion: Bastion;
  const seed = "/var/lib/cloud/seed/nocloud";
  before(async () => {
    lab = await ownLab({ packages: ["cloud-init"] });
    [n1] = (await lab.up([{ name: "n1", kind: "debian", disks: [] }])) as [LabNode];
    bastion = await openBastion({});
    const { address, identityFile } = n1;
    const network = `{ name: eth0, addresses: [${address}/24], gateways: [${address.replace(/\d+$/, "1")}], dns: [192.0.2.53] }`;
    const vars = `{ onboardingListen: "${address}:8080", bootNetwork: ${network} }`;
    const entry = `{ address: ${address}, user: deploy, identityFile: ${identityFile}, vars: ${vars} }`;
    await bastion.write({ "roster/nodes.yaml": `nodes:\n  n1: ${entry}\n` });
  });
  after(async () => {
    await bastion?.remove();
    await lab?.down();
  });

  const asRoot = (command: string): Promise<string> => bastion.does("exec", "--on", "n1", "--shell", "--", command);

  it("begins with cloud-init, after which the pinned host key is the machine's", async () => {
    await bastion.does("roster", "user-data", "n1", "--seed", "seed");
    await on(n1, "apt-get -q update && apt-get -qy install --no-install-recommends cloud-init", 300_000);
    // The lab gives a container its network; its image has no locales.
    const ours = "{ datasource_list: [NoCloud], network: { config: disabled }, locale: false }";
    await on(n1, `mkdir -p ${seed} && echo '${ours}' >/etc/cloud/cloud.cfg.d/99-lab.cfg`);
    for (const name of await readdir(join(bastion.project, "seed"))) {
      const text = await readFile(join(bastion.project, "seed", name), "base64");
      await on(n1, `echo ${text} | base64 -d >${seed}/${name}`);
    }
    expect(await on(n1, `cloud-init schema --config-file ${seed}/user-data`)).to.match(/Valid/);
    const convert = `cloud-init devel net-convert --network-data ${seed}/network-config --kind yaml --distro debian -m eth0,02:00:00:00:00:01`;
    const written = await on(n1, `${convert} --output-kind networkd -d /tmp/net && cat /tmp/net/etc/systemd/network/*`);
    expect(written)
      .to.match(new RegExp(`^Address=${n1.address}/24$`, "m"))
      .and.match(/^Gateway=/m);
    // The login of the lab knows the former host key alone, so it ends here.
    const stages = ["init --local", "init", "modules --mode=config", "modules --mode=final"];
    await on(n1, `${stages.map((stage) => `cloud-init ${stage}`).join(" && ")} && systemctl restart ssh`, 300_000);
    expect(await bastion.does("ping", "--on", "n1")).to.contain("n1");
    expect(await asRoot("hostname; id -un; ls /etc/ssh/ssh_host_*_key")).to.equal(
      "n1\nroot\n/etc/ssh/ssh_host_ed25519_key\n",
    );
  });

  it("is shown at the node, read-only, until it is over", async () => {
    const get = async (path: string, method = "GET"): Promise<{ readonly status: number; readonly text: string }> => {
      const response = await fetch(`http://${n1.address}:8080${path}`, { method });
      return { status: response.status, text: await response.text() };
    };
    await bastion.does("state", "apply", "kcore/onboarding", "--on", "n1");
    expect(JSON.parse((await get("/status.json")).text)).to.include({ node: "n1", step: "socket", state: "done" });
    expect((await get("/onboarding.log")).text).to.match(/ running socket's unit$/m);
    expect((await get("/")).text)
      .to.contain("<h1>")
      .and.contain("running socket's unit");
    expect([(await get("/etc/passwd")).status, (await get("/", "POST")).status]).to.deep.equal([404, 405]);
    expect(
      await asRoot("stat -c %a /var/lib/kcore/status.json; systemctl list-units --failed --plain --no-legend 'kcore*'"),
    ).to.equal("600\n");

    await bastion.does("state", "apply", "kcore/onboarding", "--on", "n1", "--set", "state=absent");
    expect(await get("/").catch(() => "closed")).to.equal("closed");
    const left = "ls -d /run/kcore-onboarding /etc/kcore/onboarding.sh /etc/systemd/system/*kcore* 2>/dev/null || :";
    expect(await asRoot(left)).to.equal("");
    // A node that was ready once gets the page no more.
    await asRoot(`printf '"node_ready"\\n' >/var/lib/kcore/milestones`);
    expect(await bastion.does("state", "apply", "kcore/onboarding", "--on", "n1")).to.contain("changed=0");
    expect(await asRoot(left)).to.equal("");
  });
});
