/* ZooKeeper's client in C proves itself by DIGEST-MD5: HOST:PORT, and a directory for passwords. */
#include <sasl/sasl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zookeeper.h>

static void check(int holds, const char *what) {
    if (!holds) {
        fprintf(stderr, "not so: %s\n", what);
        exit(1);
    }
}

static void hear(zhandle_t *zh, int type, int state, const char *path, void *context) {}

/* client proves a user, and waits until it is in a state. */
static zhandle_t *client(char **args, const char *user, const char *password, int wanted) {
    char file[1000];
    snprintf(file, sizeof file, "%s/%s", args[2], password);
    FILE *f = fopen(file, "w");
    check(f && fputs(password, f) >= 0 && fclose(f) == 0, "the password is written");
    zoo_sasl_params_t sasl = {.service = "zookeeper", .host = "zk-sasl-md5", .mechlist = "DIGEST-MD5"};
    sasl.callbacks = zoo_sasl_make_basic_callbacks(user, NULL, file);
    zhandle_t *zh = zookeeper_init_sasl(args[1], hear, 10000, NULL, NULL, 0, NULL, &sasl);
    check(zh != NULL, "there is a client");
    for (int i = 0; i < 2000 && zoo_state(zh) != wanted; i++) {
        usleep(10000);
    }
    check(zoo_state(zh) == wanted, user);
    return zh;
}

int main(int count, char **args) {
    check(count == 3, "HOST:PORT and a directory are given");
    zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
    check(sasl_client_init(NULL) == SASL_OK, "SASL is there");
    zhandle_t *bob = client(args, "bob", "se,cr\"et", ZOO_CONNECTED_STATE);
    zhandle_t *eve = client(args, "eve", "other", ZOO_CONNECTED_STATE);
    struct ACL mine = {ZOO_PERM_ALL, {"sasl", "bob"}};
    struct ACL_vector acl = {1, &mine};
    check(zoo_create(bob, "/c", "1", 1, &acl, 0, NULL, 0) == ZOK, "bob creates a node");
    char data[10];
    int length = sizeof data;
    check(zoo_get(bob, "/c", 0, data, &length, NULL) == ZOK && length == 1, "bob reads it");
    check(zoo_get(eve, "/c", 0, data, &length, NULL) == ZNOAUTH, "eve may not read it");
    zhandle_t *wrong = client(args, "bob", "wrong", ZOO_AUTH_FAILED_STATE);
    zookeeper_close(bob);
    zookeeper_close(eve);
    zookeeper_close(wrong);
    puts("ok");
    return 0;
}
