# Perl with modules in Perl and in C; what is missing fails as it does
use strict; use warnings;
use POSIX (); use List::Util qw(sum); use Data::Dumper; use File::Spec; use Encode; use Socket;
use Storable qw(dclone); use Time::HiRes; use Digest::SHA qw(sha1_hex); use LWP::UserAgent; use JSON::PP;
$Data::Dumper::Sortkeys = 1;
print sum(1 .. 4), " ", POSIX::floor(2.5), " ", sha1_hex("x"), " ", encode_json(dclone([1, { a => 2 }])), "\n";
print Dumper(\%INC), "$^X $]\n", join("\n", @INC), "\n";
eval { require Own::Missing }; print $@;
