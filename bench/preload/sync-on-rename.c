/*
 * Makes a server durable that is not: every rename first syncs the file, and afterwards the directory that the new name is
 * in. Loaded into nginx with LD_PRELOAD it gives the peer "nginx with fsync": the same server, the same promise as ours.
 * A sync that fails makes the rename fail, so that the peer never answers for what is not on the disk.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int (*rename_call)(const char *, const char *);

static int sync_path(const char *path, int flags) {
  int descriptor = open(path, flags | O_CLOEXEC);
  if (descriptor < 0) return -1;
  int result = fsync(descriptor);
  int saved = errno;
  close(descriptor);
  errno = saved;
  return result;
}

static int sync_parent(const char *path) {
  char parent[4096];
  size_t length = strlen(path);
  if (length >= sizeof parent) {
    errno = ENAMETOOLONG;
    return -1;
  }
  memcpy(parent, path, length + 1);
  char *slash = strrchr(parent, '/');
  if (slash == NULL) return sync_path(".", O_RDONLY | O_DIRECTORY);
  if (slash == parent) slash++;
  *slash = '\0';
  return sync_path(parent, O_RDONLY | O_DIRECTORY);
}

int rename(const char *from, const char *to) {
  static rename_call real_rename;
  if (real_rename == NULL) real_rename = (rename_call)dlsym(RTLD_NEXT, "rename");
  if (real_rename == NULL) abort();
  if (sync_path(from, O_RDONLY) != 0) return -1;
  if (real_rename(from, to) != 0) return -1;
  return sync_parent(to);
}
