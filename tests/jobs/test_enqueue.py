"""A ring is made after the commit, never for what was rolled back, and may be lost."""

from __future__ import annotations

import inspect

import pytest
import redis
from rq.job import Job
from rq.serializers import JSONSerializer

from jobs.process import import_function
from webapp.access.models import Workspace
from webapp.extensions import create_redis_client, db
from webapp.work import jobs_queue


def rings(client: redis.Redis) -> set[str]:
    return jobs_queue.queued_ids(client, "export")


def test_a_job_is_enqueued_when_the_row_is_committed(client):
    jobs_queue.enqueue_after_commit(db.session, client, "export", "exp_A")
    db.session.add(Workspace(name="with it"))
    assert rings(client) == set()
    db.session.commit()
    assert rings(client) == {"exp_A"}
    db.session.add(Workspace(name="later"))
    db.session.commit()
    assert client.llen("rq:queue:exports") == 1, "a ring is made once"


def test_no_job_is_enqueued_for_a_row_that_was_rolled_back(client):
    jobs_queue.enqueue_after_commit(db.session, client, "export", "exp_A")
    db.session.add(Workspace(name="never"))
    db.session.rollback()
    db.session.add(Workspace(name="other"))
    db.session.commit()
    assert rings(client) == set()


def test_a_released_savepoint_is_no_commit(client):
    jobs_queue.enqueue_after_commit(db.session, client, "export", "exp_A")
    with db.session.begin_nested():
        db.session.add(Workspace(name="inside"))
    assert rings(client) == set()
    with pytest.raises(RuntimeError), db.session.begin_nested():
        raise RuntimeError
    db.session.commit()
    assert rings(client) == {"exp_A"}


def test_redis_down_is_not_the_callers_trouble(app, tmp_path):
    nowhere = create_redis_client(f"unix://{tmp_path}/nothing.sock")
    jobs_queue.enqueue_after_commit(db.session, nowhere, "export", "exp_A")
    db.session.add(Workspace(name="kept"))
    db.session.commit()
    assert jobs_queue.enqueue(nowhere, "export", "exp_A") is False


def test_redis_contains_json_that_names_the_work(client):
    jobs_queue.enqueue(client, "export", "exp_A")
    (name,) = client.lrange("rq:queue:exports", 0, -1)
    job = Job.fetch(name.decode(), connection=client, serializer=JSONSerializer)
    assert (job.func_name, list(job.args)) == (jobs_queue.JOB_FUNCTION, ["export", "exp_A"])


@pytest.mark.parametrize("kind", jobs_queue.KINDS.values(), ids=jobs_queue.KINDS)
def test_every_kind_names_functions_that_take_an_id(kind):
    for dotted in (kind.job, kind.on_end):
        assert len(inspect.signature(import_function(dotted)).parameters) == 1, dotted
