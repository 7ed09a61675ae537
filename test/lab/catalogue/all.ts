import { inOrder, labSamples } from "#support/lab-samples.ts";
import { certificate } from "./certificate.ts";

/**
 * Samples of each module, in order, as some depend on others. Two modules are left out.
 * clock.synchronized: no time service starts in a container. swap.managed: a container sees its host's swap, and can use none.
 */
export const samples = inOrder(
  `
  directory.managed, file.managed, file.managed validated, symlink.managed, file.absent, group.managed,
  user.managed, package.installed, unit.managed, service.running, service.stopped, command.run creates,
  script.run creates, key.generated, wait.for, port.open, fact.assert, disk.partitioned,
  filesystem.formatted mount, mount.mounted, file.line, file.line absent, file.block, hosts.entry,
  authorized_key.present, user.password, sysctl.set, sysctl.set one key, kernel_module.loaded, hostname.set,
  timezone.set, locale.set, limits.set, package.installed policy, command.run check, firewall.rules,
  sudoers.managed, timer.managed, cron.managed, logrotate.managed, package.repository, kernel.updated,
  package.upgraded, package.installed curl, file.downloaded, archive.extracted, directory.synced, ca.trusted,
  package.installed disks, disk.health, disk.partitioned several, lvm.physical_volume,
  lvm.physical_volume group, lvm.volume_group, filesystem.formatted, filesystem.formatted grow,
  filesystem.grown, file.managed storage, file.managed registry, package.installed programs,
  script.run programs, git.cloned, container.image, container.image pulled, http.ready, certificate.dropped,
  network.interface, service.current, reboot.done, reboot.ifRequired, nix.installed, command.run generations,
  nix.profile, nix.collected`,
  new Map([...labSamples("container"), [certificate.id, certificate]]),
);
