import { contentOf, isMade } from "#support/workload.ts";
import { placesOf, renew, type Contender, type Scene } from "./scene.ts";

/** pyinfra from version 3 on: all nodes in parallel, and none waits for another between two operations. */
export function pyinfraContender(scene: Scene): Contender {
  const { targets, nodes } = scene;
  const [folder, base] = placesOf(scene, "pyinfra");
  const hosts = nodes.map(
    ({ name, address, port }) => `("${name}", {"ssh_hostname": "${address}", "ssh_port": ${port}})`,
  );
  const login = [
    `"ssh_user": "root"`,
    `"ssh_key": "${targets.identityFile}"`,
    `"ssh_allow_agent": False`,
    `"ssh_look_for_keys": False`,
    `"ssh_known_hosts_file": "${folder}/known_hosts"`,
    `"ssh_strict_host_key_checking": "yes"`,
  ];
  return {
    name: "pyinfra",
    base,
    reset() {
      renew(folder, base, scene, {
        "inventory.py": `targets = ([${hosts.join(", ")}], {${login.join(", ")}})\n`,
        known_hosts: nodes.map(({ address, port }) => `[${address}]:${port} ${targets.hostKey}\n`).join(""),
        "deploy.py": deploy(scene, base),
        ...Object.fromEntries(
          scene.work.files.map((file, at) => [`templates/f${at}.j2`, contentOf(file, "{{ host.name }}")]),
        ),
      });
    },
    command: {
      words: ["pyinfra", "-y", "--no-wait", "--parallel", String(nodes.length), "inventory.py", "deploy.py"],
      cwd: folder,
      env: { HOME: folder },
    },
    changed(stdout) {
      const counts = [...stdout.matchAll(/^changed (\d+) of (\d+) on t\d+$/gm)];
      if (counts.length !== nodes.length)
        throw new Error(`pyinfra: ${counts.length} of ${nodes.length} nodes are done`);
      return counts.reduce((sum, [, changed]) => sum + Number(changed), 0);
    },
  };
}

function deploy({ work }: Scene, base: string): string {
  // pyinfra counts each shell command as a change, so that a guard has to be a fact.
  const once = (path: string, isThere: string) =>
    `if not ${isThere}:\n    done.append(server.shell(commands=[f"echo made >${path}"]))`;
  const here = (path: string) => `f"{here}/${path}"`;
  return `from pyinfra import host
from pyinfra.facts.files import File
from pyinfra.facts.server import Command
from pyinfra.operations import apt, files, python, server

here = f"${base}/{host.name}"
done = []
${[
  ...(work.packages.length > 0 ? [`done.append(apt.packages(packages=${JSON.stringify(work.packages)}))`] : []),
  ...work.directories.map(
    ({ path, mode }) => `done.append(files.directory(path=${here(path)}, mode="${mode.slice(1)}"))`,
  ),
  ...work.files.map(
    ({ path, mode }, at) =>
      `done.append(files.template(src="templates/f${at}.j2", dest=${here(path)}, mode="${mode.slice(1)}"))`,
  ),
  ...work.links.map(({ path, target }) => `done.append(files.link(path=${here(path)}, target="${target}"))`),
  ...work.commands.map(({ path, guard }) =>
    once(
      `{here}/${path}`,
      guard === "creates"
        ? `host.get_fact(File, path=${here(path)})`
        : `host.get_fact(Command, f"${isMade(`{here}/${path}`)} && echo made || true")`,
    ),
  ),
].join("\n")}


def tell(name=host.name, done=done):
    print(f"changed {sum(each.did_change() for each in done)} of {len(done)} on {name}")


python.call(function=tell)
`;
}
