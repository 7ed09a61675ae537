import { join } from "node:path";
import { expect } from "chai";
import type { RunEvent } from "#engine/events/event.ts";
import type { Lab, LabNode } from "#lab/lab.ts";
import { labRoster, on, openBastion, type Bastion } from "#support/deploy.ts";
import { ownLab } from "#support/own-lab.ts";

const pack = join(import.meta.dirname, "../../packs/postgresql");
/** A role and a database with signs of the shell, of SQL and of psql in their names. */
const odd = `o'dd "role" $x :y \\z`;
const state = `params:
  password: { type: secret, required: true }
steps:
  - include: postgresql/server
  - id: readers
    postgresql.role: { name: readers, login: false }
  - id: odd
    postgresql.role: { name: ${JSON.stringify(odd)}, password: "{{params.password}}", memberOf: [readers], connectionLimit: 5 }
  - id: database
    postgresql.database: { name: ${JSON.stringify(odd)}, owner: ${JSON.stringify(odd)}, extensions: [pgcrypto] }
`;

describe("the pack postgresql", function () {
  this.timeout(600_000);
  let lab: Lab;
  let node: LabNode;
  let bastion: Bastion;

  before(async () => {
    lab = await ownLab({ packages: ["postgresql"] });
    [node] = (await lab.up([{ name: "n1", kind: "debian", disks: [] }])) as [LabNode];
    bastion = await openBastion({ "roster/lab.yaml": await labRoster(lab), "states/shop.yaml": state });
    await bastion.does("pack", "add", pack);
  });
  after(async () => {
    await bastion?.remove();
    await lab?.down();
  });

  /** The outcomes of the roles and the database, after a run with this password. */
  async function apply(password: string, ...flags: readonly string[]): Promise<readonly string[]> {
    const end = await bastion.kcore(["state", "apply", "shop", "--on", "n1", "--set", "password=env:P", ...flags], {
      env: { P: password },
    });
    expect(end.code, end.stdout + end.stderr).to.equal(0);
    const events = await bastion.events();
    const told = JSON.stringify(events) + end.stdout + end.stderr;
    expect(told, "the password is told").not.to.contain(password);
    const finished = events.filter((event) => event.type === "step.finished") as Extract<
      RunEvent,
      { outcome: string; title: string }
    >[];
    return finished.map(({ title, outcome }) => `${title} ${outcome}`);
  }

  const login = (password: string): Promise<string> =>
    on(
      node,
      `export PGPASSWORD='${password.replaceAll("'", `'\\''`)}' PGUSER='${odd.replaceAll("'", `'\\''`)}' PGHOST=127.0.0.1
PGDATABASE=$PGUSER psql -XAtwc "SELECT current_user = current_database(), extname FROM pg_extension WHERE extname = 'pgcrypto'"`,
    );

  it("makes roles and a database with odd names, whose password works, and changes nothing the second time", async () => {
    const password = `pa'ss "\\ $word`;
    const made = ["readers changed", "odd changed", "database changed"];
    expect((await apply(password)).slice(-3)).to.deep.equal(made);
    expect((await login(password)).trim()).to.equal("t|pgcrypto");
    expect((await apply(password)).slice(-3)).to.deep.equal(made.map((each) => each.replace("changed", "ok")));
    const logged = await on(node, "cat /var/log/postgresql/*.log");
    expect(logged).not.to.contain("$word");
  });

  it("names what differs, and gives the role another password", async () => {
    await on(node, `runuser -u postgres -- psql -c 'ALTER ROLE readers CREATEDB' -c 'DROP DATABASE IF EXISTS none'`);
    expect((await apply("an0ther Word", "--dry-run")).slice(-3)[0]).to.equal("readers would-change");
    expect((await apply("an0ther Word")).slice(-3)).to.deep.equal(["readers changed", "odd changed", "database ok"]);
    expect((await login("an0ther Word")).trim()).to.equal("t|pgcrypto");
  });
});
